//! Rules of the tree and of template.yaml.

mod gateway;
mod observability;
pub(crate) mod template;
mod tree;
