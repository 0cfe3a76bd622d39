//! The emulated services together.

use std::sync::Arc;

use http::HeaderValue;
use runtime::Clock;
use tokio::sync::watch;

use crate::access::Access;
use crate::bus::{self, EventBus};
use crate::calls::CallLog;
use crate::changes::Changes;
use crate::cloudformation::CloudFormation;
use crate::data_dir::{DataDir, OpenDir};
use crate::dynamodb::{self, DynamoDb};
use crate::error::OpenError;
use crate::faults::Faults;
use crate::mail::{self, Mailbox};
use crate::secrets::{self, Secrets};
use crate::sqlite::Sqlite;
use crate::sqs::{self, Sqs};
use crate::time::StackTime;

/// The emulated services. Clones are cheap and share the state.
#[derive(Clone)]
pub struct Aws(Arc<Services>);

struct Services {
    dynamodb: DynamoDb,
    sqs: Sqs,
    bus: EventBus,
    mail: Mailbox,
    secrets: Secrets,
    cloudformation: CloudFormation,
    access: Access,
    faults: Arc<Faults>,
    calls: CallLog,
    changes: Changes,
    closed: watch::Sender<bool>,
    time: StackTime,
    sqlite: Sqlite,
    // Dropped last: it removes a temporary directory, whose files must be closed by then.
    dir: OpenDir,
}

impl Aws {
    /// Opens the data directory and DynamoDB.
    pub async fn open(dir: &DataDir, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let dir = OpenDir::open(dir)?;
        let time = StackTime::new(clock);
        let changes = Changes::default();
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
            cloudformation: CloudFormation::new(time.clone()),
            access: Access::default(),
            faults,
            calls: CallLog::default(),
            changes,
            closed: watch::Sender::new(false),
            time,
            sqlite,
            dir,
        };
        Ok(Self(Arc::new(services)))
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

    /// CloudFormation.
    pub fn cloudformation(&self) -> &CloudFormation {
        &self.0.cloudformation
    }

    /// The permissions of functions and roles.
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

    /// The stack's time, as a header.
    pub(crate) fn date(&self) -> HeaderValue {
        let date = self.0.time.now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        HeaderValue::from_str(&date).expect("a date is a header value")
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
