//! The AWS side of the local stack: DynamoDB, SQS, EventBridge `PutEvents`, SES v2 `SendEmail` and Secrets Manager
//! `GetSecretValue` and `PutSecretValue` on one HTTP endpoint, as far as template.yaml uses them. Serves local runs
//! alone. SQS speaks the JSON protocol; a request of the Query protocol is refused by name.
//!
//! DynamoDB is dynoxide in this process, behind a loopback listener of its own; faults, crash signals and the call log sit
//! before it. The other services share one SQLite file. Every time is stack time, from the [`runtime::Clock`].
//!
//! Good to know for a host:
//! - [`Sqs::set_port`] has to be called once the port is known: queue URLs name it.
//! - [`Sqs::busy`] and [`Sqs::next_due`] count queues of the template ([`Sqs::ensure_queue`] in this run). A queue that somebody
//!   made with `CreateQueue` has no function that would ever empty it.
//! - [`Access`] decides what requests below `/env/{environment}/` may do: a function that it has no policy for may do nothing.
//! - [`Faults`], [`CallLog`] and crash signals see requests below `/env/{environment}/` alone; the last two only while an
//!   [`Invocation`] of that environment is open.
//! - Queues, events, mails, secrets and stream checkpoints are in `services.sqlite`; tables and streams in `dynamodb.sqlite`.
//! - A table with a stream keeps both images inside, so `DescribeTable` says `NEW_AND_OLD_IMAGES`;
//!   [`DynamoDb::stream_read`] shows those of the template's view type.

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
pub use bus::EventBus;
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

/// The region of everything here.
pub const REGION: &str = "us-east-1";

/// The account of everything here.
pub const ACCOUNT: &str = "000000000000";

/// The emulated services. Cheap to clone; the state goes when the last clone does.
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
    // Last: a temporary directory is removed when nothing uses it any more.
    dir: OpenDir,
}

/// A counter that goes up whenever something happened that a poller could care about.
#[derive(Clone)]
pub(crate) struct Changes(Arc<watch::Sender<u64>>);

impl Changes {
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }

    pub(crate) fn bump(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl Aws {
    /// Opens the data directory and starts the inner DynamoDB.
    pub async fn open(dir: &DataDir, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let dir = OpenDir::open(dir)?;
        let time = StackTime::new(clock);
        let changes = Changes(Arc::new(watch::Sender::new(0)));
        let faults = Arc::new(Faults::default());
        let (sqlite, _) = Sqlite::open(&dir.file("services.sqlite"), &services_schema())?;
        let sqs = Sqs::open(sqlite.clone(), time.clone(), Arc::clone(&faults), changes.clone()).await?;
        let services = Services {
            dynamodb: DynamoDb::open(&dir.file("dynamodb.sqlite"), sqlite.clone(), time.clone(), changes.clone())
                .await?,
            bus: EventBus::open(sqlite.clone(), time.clone(), sqs.clone()),
            sqs,
            mail: Mailbox::open(sqlite.clone(), time.clone()),
            secrets: Secrets::open(sqlite.clone(), time),
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

    /// The endpoint: `/` and `/v2/email/..`, and the same below `/env/{environment}/`, which names the function environment
    /// that calls. Bodies up to 16 MiB.
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

    /// What SES has sent.
    pub fn mail(&self) -> &Mailbox {
        &self.0.mail
    }

    /// Secrets Manager.
    pub fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }

    /// What function environments may do.
    pub fn access(&self) -> &Access {
        &self.0.access
    }

    /// Faults that are to happen.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// What function environments call.
    pub fn calls(&self) -> &CallLog {
        &self.0.calls
    }

    /// A counter that goes up whenever something changed that a poller could care about: a write, a message, [`Aws::poke`].
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Says that something changed that this crate cannot see, such as the clock.
    pub fn poke(&self) {
        self.0.changes.bump();
    }

    /// Ends long polls and the inner DynamoDB, moves both write-ahead logs into their files and frees the data directory.
    /// Requests after this fail.
    pub async fn close(&self) {
        self.0.closed.send_replace(true);
        self.0.dynamodb.close().await;
        if let Err(error) = self.0.sqlite.checkpoint().await {
            tracing::warn!(%error, "the write-ahead log is left to the next start");
        }
        self.0.dir.release();
    }

    /// Resolves when [`Aws::close`] is called.
    pub(crate) async fn closed(&self) {
        // An error means that the sender is gone, and with it everything else.
        let _ = self.0.closed.subscribe().wait_for(|closed| *closed).await;
    }
}

fn services_schema() -> String {
    [sqs::SCHEMA, bus::SCHEMA, mail::SCHEMA, secrets::SCHEMA, dynamodb::CHECKPOINTS_SCHEMA].concat()
}
