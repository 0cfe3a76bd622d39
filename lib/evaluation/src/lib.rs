//! Evaluation of clients under their coach's automations on computed events.

mod evaluate;
mod evaluator;
mod rulebook;

pub use evaluate::Evaluated;
pub use evaluator::{CONCURRENT, Evaluator};
pub use rulebook::Rulebook;
