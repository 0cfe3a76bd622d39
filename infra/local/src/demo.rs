//! The demo workspace, and the text that the stack prints once it is ready.
//!
//! The first start creates the workspace as in production: it puts facts on the bus, then creates keys and an endpoint
//! through the settings API. Later starts read the result from `demo.json`. The bench measures on this workspace.

pub mod facts;
mod print;
mod seed;

use serde::{Deserialize, Serialize};

pub(crate) use print::seed_and_print;
pub use print::{print_bare, print_ready};
pub use seed::{SeedError, call, load_or_create, put_facts};

/// The coach who owns the demo workspace.
pub const COACH_ID: &str = "coach_demo";
/// The demo's only client.
pub const CLIENT_ID: &str = "client_demo";
/// A contact, an opportunity and a calendar of the demo.
pub const LEAD_ID: &str = "0199de00-c0de-7000-8000-000000000001";
pub const OPPORTUNITY_ID: &str = "0199de00-0b0e-7000-8000-000000000001";
pub const CALENDAR_ID: &str = "0199de00-ca1e-7000-8000-000000000001";
/// The demo receiver's hook, the last segment of its URL.
const HOOK: &str = "demo";
const FILE: &str = "demo.json";

/// The keys and the endpoint that the first start created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Demo {
    base_url: String,
    /// A partner key.
    pub partner_key: String,
    /// A CRM key with all permissions.
    pub crm_key: String,
    /// The endpoint, which is subscribed to all events.
    pub endpoint_id: String,
    webhook_secret: String,
}
