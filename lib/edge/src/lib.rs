//! The HTTP kit of the functions behind the API: authentication, requests, answers. Nothing here knows a resource.
//!
//! Every route goes through the same checks in the same order: key (401), rate (429), scope and permission (403),
//! entitlement (402), `Idempotency-Key` and body size, the claim if there is one, then the fields.

pub mod caller;
pub mod code;
pub mod command;
pub mod crm;
pub mod door;
pub mod gate;
pub mod idempotency;
pub mod inbound;
pub mod lambda;
pub mod look;
pub mod page;
pub mod problem;
pub mod reply;
mod request_log;
mod request_page;
pub mod resource;
pub mod routes;
pub mod session;

pub use caller::Caller;
pub use code::Code;
pub use command::{About, Command, Decision, EarlyCommand, Steps};
pub use door::Door;
pub use gate::{CrmCaller, EventReader, KeyHolder, Partner};
pub use inbound::Inbound;
pub use page::Page;
pub use problem::Problem;
pub use reply::Reply;
pub use request_page::request_page;
pub use resource::Resource;
pub use session::Session;
