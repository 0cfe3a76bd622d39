//! Rules for the source tree and template.yaml.

mod circles;
mod egress;
mod gateway;
mod language;
mod modes;
mod names;
mod observability;
mod parameters;
mod rehearsal;
mod releases;
pub(crate) mod template;
mod tree;
