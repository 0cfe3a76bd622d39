//! AWS emulator of the local stack: DynamoDB, SQS, EventBridge `PutEvents`, SES v2 `SendEmail`, Secrets Manager,
//! CloudFormation `ListStackResources` and STS `GetCallerIdentity` on one HTTP endpoint, as far as template.yaml and
//! its operators use them. SQS accepts the JSON protocol only.
//!
//! DynamoDB is dynoxide in this process. The other services share one SQLite file,
//! `services.sqlite`. Every time is stack time, from the [`runtime::Clock`].
//!
//! - The host must call [`Sqs::set_port`] once the port is known, since queue URLs contain it.
//! - [`Sqs::is_busy`] and [`Sqs::next_due`] count only queues of the template, since no function empties other queues.
//! - [`Access`] authorizes requests below `/env/{environment}/`, and those of roles. A function without a policy has no
//!   permissions.
//! - [`Faults`], [`CallLog`] and crash signals apply to requests below `/env/{environment}/` only. The last two require
//!   an open [`Invocation`] of that environment.
//! - A table with a stream stores both images, so `DescribeTable` returns `NEW_AND_OLD_IMAGES`.
//!   [`DynamoDb::stream_read`] returns the images of the template's view type.

mod access;
mod account;
mod answer;
mod bus;
mod calls;
mod changes;
mod cloudformation;
mod data_dir;
mod dynamodb;
mod endpoint;
mod error;
mod faults;
mod mail;
mod query;
mod secrets;
mod services;
mod sqlite;
mod sqs;
mod sts;
mod time;

pub use access::{Access, Grant, Policy};
pub use account::{ACCOUNT, REGION, stack_id};
pub use bus::{EventBus, Pattern};
pub use calls::{Call, CallLog, CrashSignal, Invocation};
pub use cloudformation::{CloudFormation, StackResource};
pub use data_dir::DataDir;
pub use dynamodb::{DynamoDb, StreamBatch, StreamPosition};
pub use error::{OpenError, SetupError, StoreError};
pub use faults::{FaultPlan, Faults};
pub use mail::{Mail, Mailbox};
pub use secrets::Secrets;
pub use services::Aws;
pub use sqs::Sqs;
