//! The routes of a sandbox: a deployment whose workspaces are invented, so that integrators can try everything.

mod data;
mod evaluation;
mod event;
mod facts;
mod first_contents;
mod mail;
mod workspace;

pub use data::{MAX_UNUSED, SETTLING, WIPE_RETRY_S, WipeJob, WipeStarted, WipeStatus};
pub use evaluation::{EvaluationResult, MAX_EVALUATED};
pub use event::{EVENTS_PER_DAY, EventSubject, SandboxEvent, SentEvent};
pub use facts::{
    FACTS_PER_DAY, FactBatch, FactInput, FactResult, FactResults, MAX_FACTS, SandboxFact, StoreResult, id_prefix,
};
pub use first_contents::{FirstContents, MAX_CLIENT_CAP, first_contents, is_configured, new_workspace, reset};
pub use mail::{MAIL_RETENTION, StoredMail, StoredMailList, is_refused};
pub use workspace::WorkspacePatch;
