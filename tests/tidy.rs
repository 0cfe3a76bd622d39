//! Rules for the source tree and template.yaml.

mod gateway;
mod language;
mod observability;
pub(crate) mod template;
mod tree;
