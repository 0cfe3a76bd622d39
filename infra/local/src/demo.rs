//! The demo workspace, and what the stack prints when it is up.
//!
//! It is made as it would be in production: the application puts facts on the bus, the coach signs in and makes keys and an
//! endpoint through the settings API. Only the first start does so; what came of it is kept in `demo.json`.

mod crm;
mod facts;
mod print;
mod seed;

use serde::{Deserialize, Serialize};

pub use print::{print_bare, print_ready, seed_and_print};
pub use seed::PERMISSIONS;

/// The coach of the demo.
const COACH_ID: &str = "coach_demo";
/// The hook of the demo receiver.
const HOOK: &str = "demo";
const FILE: &str = "demo.json";

/// What the first start made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Demo {
    base_url: String,
    partner_key: String,
    crm_key: String,
    endpoint_id: String,
    webhook_secret: String,
}
