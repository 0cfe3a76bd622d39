//! Test fixture: the emulator behind a real port, with SDK clients.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, TimeDelta, Utc};
use local_aws::{Aws, DataDir, Policy};
use runtime::{Clock, Config, Environment, SdkConfig};
use serde_json::{Value, json};

pub(crate) struct World {
    pub(crate) aws: Aws,
    pub(crate) clock: Arc<TestClock>,
    port: u16,
    dir: Arc<tempfile::TempDir>,
    server: tokio::task::JoinHandle<()>,
}

pub(crate) struct TestClock {
    now: Mutex<DateTime<Utc>>,
    step_ms: AtomicI64,
}

impl TestClock {
    fn starting_at(time: &str) -> Self {
        Self { now: Mutex::new(time.parse().unwrap()), step_ms: AtomicI64::new(0) }
    }

    pub(crate) fn advance_s(&self, seconds: i64) {
        *self.now.lock().unwrap() += TimeDelta::seconds(seconds);
    }

    pub(crate) fn advance_to(&self, at: DateTime<Utc>) {
        *self.now.lock().unwrap() = at;
    }

    /// Moves the clock forward after each read from now on, as time passes on a slow machine.
    pub(crate) fn step_ms(&self, step_ms: i64) {
        self.step_ms.store(step_ms, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        let mut clock = self.now.lock().unwrap();
        let now = *clock;
        *clock += TimeDelta::milliseconds(self.step_ms.load(Ordering::Relaxed));
        now
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(TestClock::starting_at("2030-01-01T00:00:00Z"));
        Self::open(Arc::new(tempfile::tempdir().unwrap()), clock).await
    }

    async fn open(dir: Arc<tempfile::TempDir>, clock: Arc<TestClock>) -> Self {
        let data = DataDir::Persistent(dir.path().to_owned());
        let aws = Aws::open(&data, Arc::clone(&clock) as Arc<dyn Clock>).await.unwrap();
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        aws.sqs().set_port(port);
        let router = aws.router();
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { aws, clock, port, dir, server }
    }

    /// Shuts the emulator down and starts it on the same directory and clock.
    pub(crate) async fn reopen(self) -> Self {
        self.aws.close().await;
        self.server.abort();
        Self::open(self.dir, self.clock).await
    }

    /// Starts the emulator on a copy of the current files, as after a killed process.
    pub(crate) async fn crash(self) -> Self {
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(self.dir.path()).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        self.server.abort();
        Self::open(Arc::new(copy), self.clock).await
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn advance_s(&self, seconds: i64) {
        self.clock.advance_s(seconds);
        self.aws.notify();
    }

    /// Returns the SDK configuration of a developer.
    pub(crate) fn sdk(&self) -> SdkConfig {
        self.sdk_of("any")
    }

    /// Returns the SDK configuration of a caller outside of environments with this access key id.
    pub(crate) fn sdk_of(&self, access_key_id: &str) -> SdkConfig {
        self.sdk_at("", access_key_id)
    }

    /// Adds a managed policy with these statements.
    pub(crate) fn managed_policy(&self, name: &str, statements: Value) {
        self.aws.access().set_managed(name, policy(statements));
    }

    /// Returns the SDK configuration of an environment with all permissions.
    pub(crate) fn environment(&self, name: &str) -> SdkConfig {
        self.environment_allowed(name, json!([{ "Effect": "Allow", "Action": "*", "Resource": "*" }]))
    }

    /// Returns the SDK configuration of an environment with the permissions of the statements.
    pub(crate) fn environment_allowed(&self, name: &str, statements: Value) -> SdkConfig {
        let function = name.rsplit_once('-').map_or(name, |(function, _)| function);
        self.aws.access().set(function, policy(statements));
        self.sdk_at(&format!("/env/{name}"), "any")
    }

    fn sdk_at(&self, path: &str, access_key_id: &str) -> SdkConfig {
        let endpoint = format!("http://127.0.0.1:{}{path}", self.port);
        let vars = [
            ("AWS_ACCESS_KEY_ID", access_key_id),
            ("AWS_SECRET_ACCESS_KEY", "any"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ];
        let config = Config::from_vars(vars.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Environment::new(config, Arc::clone(&self.clock) as Arc<dyn Clock>).unwrap().sdk().clone()
    }

    pub(crate) fn queue(&self, name: &str, mut properties: Value) -> String {
        properties["QueueName"] = name.into();
        self.aws.sqs().add_queue(&properties).unwrap();
        self.aws.sqs().url(name)
    }

    /// Creates a table `outbox` with a stream and key `pk`, whose items expire at `expires_at`.
    pub(crate) async fn outbox(&self) {
        self.aws.dynamodb().ensure_table(&outbox_properties()).await.unwrap();
    }
}

fn policy(statements: Value) -> Policy {
    Policy::parse(&json!({ "Version": "2012-10-17", "Statement": statements })).unwrap()
}

pub(crate) fn outbox_properties() -> Value {
    json!({
        "TableName": "outbox",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "shard", "AttributeType": "S" }],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }],
        "GlobalSecondaryIndexes": [{
            "IndexName": "unsent",
            "KeySchema": [{ "AttributeName": "shard", "KeyType": "HASH" }],
            "Projection": { "ProjectionType": "KEYS_ONLY" },
        }],
        "StreamSpecification": { "StreamViewType": "NEW_IMAGE" },
        "TimeToLiveSpecification": { "AttributeName": "expires_at", "Enabled": true },
        "PointInTimeRecoverySpecification": { "PointInTimeRecoveryEnabled": true },
        "SSESpecification": { "SSEEnabled": true },
    })
}

pub(crate) fn secret_properties() -> Value {
    json!({ "GenerateSecretString": {
        "SecretStringTemplate": "{}", "GenerateStringKey": "1", "PasswordLength": 64, "ExcludePunctuation": true,
    } })
}
