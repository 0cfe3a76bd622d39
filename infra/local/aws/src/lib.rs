//! AWS emulator of the local stack: DynamoDB, SQS, EventBridge `PutEvents`, SES v2 `SendEmail` and Secrets Manager on
//! one HTTP endpoint, as far as template.yaml uses them. SQS accepts the JSON protocol only.
//!
//! DynamoDB is dynoxide in this process. The other services share one SQLite file,
//! `services.sqlite`. Every time is stack time, from the [`runtime::Clock`].
//!
//! - The host must call [`Sqs::set_port`] once the port is known, since queue URLs contain it.
//! - [`Sqs::is_busy`] and [`Sqs::next_due`] count only queues of the template, since no function empties other queues.
//! - [`Access`] authorizes requests below `/env/{environment}/`. A function without a policy has no permissions.
//! - [`Faults`], [`CallLog`] and crash signals apply to requests below `/env/{environment}/` only. The last two require
//!   an open [`Invocation`] of that environment.
//! - A table with a stream stores both images, so `DescribeTable` returns `NEW_AND_OLD_IMAGES`.
//!   [`DynamoDb::stream_read`] returns the images of the template's view type.

mod access;
mod answer;
mod bus;
mod calls;
mod data_dir;
mod dynamodb;
mod endpoint;
mod error;
mod faults;
mod mail;
mod secrets;
mod sqlite;
mod sqs;
mod time;

use std::sync::Arc;

use runtime::Clock;
use tokio::sync::watch;

pub use access::{Access, Grant, Policy};
pub use bus::{EventBus, Pattern};
pub use calls::{Call, CallLog, CrashSignal, Invocation};
pub use data_dir::DataDir;
pub use dynamodb::{DynamoDb, StreamBatch, StreamPosition};
pub use error::{OpenError, SetupError, StoreError};
pub use faults::{FaultPlan, Faults};
pub use mail::{Mail, Mailbox};
pub use secrets::Secrets;
pub use sqs::Sqs;

use data_dir::OpenDir;
use sqlite::Sqlite;
use time::StackTime;

/// The region of all resources.
pub const REGION: &str = "us-east-1";

/// The account of all resources.
pub const ACCOUNT: &str = "000000000000";

/// The emulated services. Clones are cheap and share the state.
#[derive(Clone)]
pub struct Aws(Arc<Services>);

struct Services {
    dynamodb: DynamoDb,
    sqs: Sqs,
    bus: EventBus,
    mail: Mailbox,
    secrets: Secrets,
    access: Access,
    faults: Arc<Faults>,
    calls: CallLog,
    changes: Changes,
    closed: watch::Sender<bool>,
    sqlite: Sqlite,
    // Dropped last: it removes a temporary directory, whose files must be closed by then.
    dir: OpenDir,
}

/// A counter that increases with every change that may concern a poller.
#[derive(Clone)]
pub(crate) struct Changes(Arc<watch::Sender<u64>>);

impl Changes {
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }

    pub(crate) fn notify(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl Aws {
    /// Opens the data directory and DynamoDB.
    pub async fn open(dir: &DataDir, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let dir = OpenDir::open(dir)?;
        let time = StackTime::new(clock);
        let changes = Changes(Arc::new(watch::Sender::new(0)));
        let faults = Arc::new(Faults::default());
        let sqlite = Sqlite::open(&dir.file("services.sqlite"), &services_schema())?;
        let sqs = Sqs::open(sqlite.clone(), time.clone(), Arc::clone(&faults), changes.clone()).await?;
        let services = Services {
            dynamodb: DynamoDb::open(&dir.file("dynamodb.sqlite"), sqlite.clone(), time.clone(), changes.clone())
                .await?,
            bus: EventBus::open(sqlite.clone(), time.clone(), sqs.clone()),
            sqs,
            mail: Mailbox::open(sqlite.clone(), time.clone()),
            secrets: Secrets::open(sqlite.clone()),
            access: Access::default(),
            faults,
            calls: CallLog::default(),
            changes,
            closed: watch::Sender::new(false),
            sqlite,
            dir,
        };
        Ok(Self(Arc::new(services)))
    }

    /// Returns the endpoint's router: `/` and `/v2/email/..`, and the same below `/env/{environment}/`, where
    /// `environment` is the calling function environment. Bodies are limited to 16 MiB.
    pub fn router(&self) -> axum::Router {
        endpoint::router(self.clone())
    }

    /// DynamoDB and its streams.
    pub fn dynamodb(&self) -> &DynamoDb {
        &self.0.dynamodb
    }

    /// SQS.
    pub fn sqs(&self) -> &Sqs {
        &self.0.sqs
    }

    /// EventBridge.
    pub fn bus(&self) -> &EventBus {
        &self.0.bus
    }

    /// The mails that SES has sent.
    pub fn mail(&self) -> &Mailbox {
        &self.0.mail
    }

    /// Secrets Manager.
    pub fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }

    /// The permissions of functions.
    pub fn access(&self) -> &Access {
        &self.0.access
    }

    /// The pending faults.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// The log of function environments' calls.
    pub fn calls(&self) -> &CallLog {
        &self.0.calls
    }

    /// Subscribes to a counter that increases with every write, message and [`Aws::notify`].
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Wakes pollers after a change that this crate cannot see, such as one of the clock.
    pub fn notify(&self) {
        self.0.changes.notify();
    }

    /// Ends long polls, closes DynamoDB, checkpoints both write-ahead logs and unlocks the data directory. Later
    /// requests fail.
    pub async fn close(&self) {
        self.0.closed.send_replace(true);
        self.0.dynamodb.close().await;
        if let Err(error) = self.0.sqlite.checkpoint().await {
            tracing::warn!(%error, "cannot checkpoint the write-ahead log; the next start does");
        }
        self.0.dir.release();
    }

    /// Resolves when [`Aws::close`] is called.
    pub(crate) async fn closed(&self) {
        // An error means that the sender was dropped, which is a close too.
        let _ = self.0.closed.subscribe().wait_for(|closed| *closed).await;
    }
}

fn services_schema() -> String {
    [
        &sqs::schema(),
        bus::SCHEMA,
        mail::SCHEMA,
        secrets::SCHEMA,
        dynamodb::CHECKPOINTS_SCHEMA,
        dynamodb::DEFINITIONS_SCHEMA,
    ]
    .concat()
}
