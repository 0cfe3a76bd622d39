//! Rules for the source tree and template.yaml.

mod gateway;
mod language;
mod names;
mod observability;
mod parameters;
pub(crate) mod template;
mod tree;
