//! Carries outbox entries on: events to the delivery queue, one order per endpoint, and facts to the bus.
//!
//! Two ways lead here. The table's stream brings entries as they are written. The schedule looks for what the stream
//! has not carried by now: a record that the stream gave up on, an entry that was held back and whose holder died. An
//! entry is deleted once it has been sent, so whatever dies in between is done again; ids are derived, so that this
//! changes nothing for receivers.

mod carry;
mod erased;
mod event;
mod fan_out;
mod unsent;

use std::sync::Arc;

use aws_lambda_events::event::dynamodb::EventRecord;
use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use chrono::TimeDelta;
use domain::time::Timestamp;
use lambda_runtime::LambdaEvent;
use outbound::bus::Bus;
use outbound::delivery::DeliveryQueue;
use outbound::mail::Mailer;
use runtime::{BoxError, Clock, Environment, Observer, error_chain};
use store::Db;
use store::client::ClientLookup;
use store::contact::Contacts;
use store::delivery::Deliveries;
use store::endpoint::Endpoints;
use store::outbox::{Content, Entry, Outbox};
use store::vault::Vault;
use store::workspace::Workspaces;

pub use event::Event;

/// The clocks of two machines differ: an entry that is due within this time is due.
const CLOCK_SKEW: TimeDelta = TimeDelta::seconds(2);

/// A started relay.
pub struct App {
    clock: Arc<dyn Clock>,
    outbox: Outbox,
    clients: ClientLookup,
    contacts: Contacts,
    endpoints: Endpoints,
    deliveries: Deliveries,
    queue: DeliveryQueue,
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
            queue: DeliveryQueue::new(env, "DELIVERIES_QUEUE_URL")?,
            bus: Bus::new(env)?,
            workspaces: Workspaces::new(env, &db)?,
            mailer: Mailer::new(env)?,
            observer: env.observer(),
        })
    }

    /// Handles what the stream brings, or the schedule's call.
    pub async fn handle(&self, event: LambdaEvent<Event>) -> Result<DynamoDbEventResponse, BoxError> {
        let LambdaEvent { payload, context } = event;
        let work = async {
            match payload {
                Event::Stream(stream) => self.carry_stream(stream.records).await,
                Event::Scheduled { .. } => self.carry_unsent().await.map(|()| DynamoDbEventResponse::default()),
            }
        };
        self.observer.event(&context.request_id, work).await
    }

    /// Carries a batch of the stream. The first record that failed is named, and Lambda brings it and all after it
    /// again.
    async fn carry_stream(&self, records: Vec<EventRecord>) -> Result<DynamoDbEventResponse, BoxError> {
        let mut batch: Vec<(String, Entry)> = Vec::with_capacity(records.len());
        for record in records.into_iter().filter(|record| record.event_name != "REMOVE") {
            let sequence_number = record.change.sequence_number.ok_or("a stream record has no sequence number")?;
            match self.outbox.from_image(record.change.new_image) {
                Ok(entry) => {
                    // A later image of an entry replaces an earlier one.
                    batch.retain(|(_, earlier)| earlier.content.id() != entry.content.id());
                    batch.push((sequence_number, entry));
                }
                // It would hold up its shard to no end. It stays in the table, where the schedule complains of it.
                Err(error) => tracing::error!(sequence_number, error = error_chain(&error), "an entry cannot be read"),
            }
        }
        let due_by = self.now() + CLOCK_SKEW;
        batch.retain(|(_, entry)| entry.send_after <= due_by);
        let (sequence_numbers, entries): (Vec<String>, Vec<Entry>) = batch.into_iter().unzip();
        let carried = self.carry(&entries).await;
        // A mail that is refused would hold up everybody's events: it is the schedule's to send.
        let has_failed = |(entry, carried): (&Entry, &Result<(), BoxError>)| {
            carried.is_err() && !matches!(entry.content, Content::Notice(_))
        };
        let mut response = DynamoDbEventResponse::default();
        if let Some(first) = entries.iter().zip(&carried).position(has_failed) {
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
