//! The local stack: everything that template.yaml declares, in one process, on the function code that production runs.
//!
//! ```text
//! HTTP  -> gateway -> pools of function environments -> AWS endpoint (crate local-aws)
//! queues, streams -> mappings -> pools
//! time  -> schedule, advance -> pools
//! ```
//! `running` assembles and runs the parts, `control` serves `/_local/*`, `demo` seeds a workspace to play with.

pub mod advance;
pub mod call_history;
pub mod clock;
mod control;
pub mod demo;
pub mod environments;
pub mod functions;
pub mod gateway;
pub mod linked;
mod log;
mod loopback;
pub mod mappings;
pub mod options;
pub mod permissions;
pub mod process;
pub mod receiver;
mod request_id;
pub mod running;
pub mod schedule;
pub mod settle;
pub mod stack;
pub mod state_dir;
pub mod template;
pub mod template_file;
pub mod work;
