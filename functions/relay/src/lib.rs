//! Publishes outbox entries: events to the delivery queue, one order per endpoint, and to the event feed; changes to
//! the bus; notices by mail.
//!
//! Entries arrive in two ways. The table's stream brings them as they are written. The schedule finds entries that the
//! stream has not published: a record that the stream gave up on, a held entry whose holder died. An entry is deleted
//! once it was sent, so a crash repeats the work. Ids are derived, so receivers get nothing new from a repeat.
//!
//! The schedule also looks for deliveries that are long due (`overdue`).

mod contacts;
mod erased;
mod fan_out;
mod feed;
mod invocation;
mod overdue;
mod publish;
mod unsent;

use std::sync::Arc;

use aws_lambda_events::event::dynamodb::EventRecord;
use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use chrono::TimeDelta;
use domain::time::Timestamp;
use futures::future::{BoxFuture, FutureExt};
use lambda_runtime::LambdaEvent;
use outbound::bus::Bus;
use outbound::delivery::{DeliveryQueue, RetryQueue};
use outbound::mail::Mailer;
use runtime::{BoxError, Clock, Environment, Observer, error_chain};
use store::Db;
use store::client::ClientLookup;
use store::contact::Contacts;
use store::delivery::Deliveries;
use store::endpoint::Endpoints;
use store::event_feed::EventFeed;
use store::key::Keys;
use store::outbox::{Content, Entry, Outbox};
use store::vault::Vault;
use store::workspace::Workspaces;

pub use invocation::Invocation;

/// Tolerance for differing clocks: an entry that is due within this time counts as due.
const CLOCK_SKEW: TimeDelta = TimeDelta::seconds(2);

/// A started relay.
pub struct App {
    clock: Arc<dyn Clock>,
    outbox: Outbox,
    clients: ClientLookup,
    contacts: Contacts,
    endpoints: Endpoints,
    deliveries: Deliveries,
    keys: Keys,
    feed: EventFeed,
    queue: DeliveryQueue,
    retries: RetryQueue,
    bus: Bus,
    workspaces: Workspaces,
    mailer: Mailer,
    observer: Observer,
}

impl App {
    /// Connects to everything that the relay uses.
    pub async fn new(env: &Environment) -> Result<Self, BoxError> {
        let db = Db::new(env);
        let vault = Vault::open(env).await?;
        Ok(Self {
            clock: env.clock(),
            outbox: Outbox::new(env, &db, &vault)?,
            clients: ClientLookup::new(env, &db)?,
            contacts: Contacts::new(env, &db)?,
            endpoints: Endpoints::new(env, &db, &vault)?,
            deliveries: Deliveries::new(env, &db, &vault)?,
            keys: Keys::new(env, &db)?,
            feed: EventFeed::new(env, &db, &vault)?,
            queue: DeliveryQueue::new(env)?,
            retries: RetryQueue::new(env)?,
            bus: Bus::new(env)?,
            workspaces: Workspaces::new(env, &db)?,
            mailer: Mailer::new(env, &db, &vault)?,
            observer: env.observer(),
        })
    }

    /// Handles a batch of the stream, or the schedule's call.
    ///
    /// The future is boxed, so that this crate is compiled once, and not again in each program that runs it.
    pub fn handle(&self, event: LambdaEvent<Invocation>) -> BoxFuture<'_, Result<DynamoDbEventResponse, BoxError>> {
        let LambdaEvent { payload, context } = event;
        let work = async move {
            match payload {
                Invocation::Stream(stream) => self.publish_stream(stream.records).await,
                Invocation::Scheduled { .. } => {
                    let (published, reordered) = tokio::join!(self.publish_unsent(), self.reorder_overdue());
                    published.and(reordered).map(|()| DynamoDbEventResponse::default())
                }
            }
        };
        async move { self.observer.event(&context.request_id, work).await }.boxed()
    }

    /// Publishes a batch of the stream. The answer names the first record that failed, and Lambda redelivers that
    /// record and all after it.
    async fn publish_stream(&self, records: Vec<EventRecord>) -> Result<DynamoDbEventResponse, BoxError> {
        let mut batch: Vec<(String, Entry)> = Vec::with_capacity(records.len());
        for record in records.into_iter().filter(|record| record.event_name != "REMOVE") {
            let sequence_number = record.change.sequence_number.ok_or("a stream record has no sequence number")?;
            match self.outbox.from_image(record.change.new_image) {
                Ok(entry) => {
                    // A later image of an entry replaces an earlier one.
                    batch.retain(|(_, earlier)| earlier.content.id() != entry.content.id());
                    batch.push((sequence_number, entry));
                }
                // An unreadable entry would block its shard for ever. The entry stays in the table, and the schedule
                // reports it.
                Err(error) => tracing::error!(sequence_number, error = error_chain(&error), "an entry cannot be read"),
            }
        }
        let due_by = self.now() + CLOCK_SKEW;
        batch.retain(|(_, entry)| entry.send_after <= due_by);
        let (sequence_numbers, entries): (Vec<String>, Vec<Entry>) = batch.into_iter().unzip();
        let published = self.publish(&entries).await;
        // A refused mail must not hold up the entries behind it. The schedule retries the mail.
        let has_failed = |(entry, published): (&Entry, &Result<(), BoxError>)| {
            published.is_err() && !matches!(entry.content, Content::Notice(_))
        };
        let mut response = DynamoDbEventResponse::default();
        if let Some(first) = entries.iter().zip(&published).position(has_failed) {
            let mut failure = DynamoDbBatchItemFailure::default();
            failure.item_identifier = Some(sequence_numbers[first].clone());
            response.batch_item_failures.push(failure);
        }
        Ok(response)
    }

    fn now(&self) -> Timestamp {
        Timestamp::new(self.clock.now())
    }
}
