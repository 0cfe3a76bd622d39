//! The timeline of a client: what the tables hold about the client, and about the contacts that the client is or was,
//! by time. It has no names and no content.
//!
//! 1. `read` Query of the client's partition of `records`; of the events of the coaches' feeds, up to two months of
//!    them; of GSI `by_subject` of `deliveries`, then BatchGetItem; of all shards of the outbox, then BatchGetItem.
//!    First, Query of the coaches' contacts.

use chrono::NaiveDate;
use domain::id::EndpointId;
use domain::time::Timestamp;
use futures::future::try_join4;
use runtime::{BoxError, Environment};
use serde::Serialize;

use super::person::Person;
use crate::client::StoredClient;
use crate::contact::Contacts;
use crate::db::{Db, Item, StoreError, Table, number, query_up_to, text};
use crate::delivery::{SubjectIndex, endpoint_of};
use crate::outbox;
use crate::record::RecordReader;

/// Most lines of a timeline.
pub const MAX_LINES: usize = 1_000;

/// The source of a line. Lines of one time follow in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// The part of a fact that is kept.
    Record,
    /// A change in the outbox, with the time from which it is to be sent.
    Change,
    /// An event of a feed, with the time of its storing.
    Event,
    /// A delivery, with the time of its creation.
    Delivery,
}

/// A line of a timeline. A member that does not apply is null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelineLine {
    pub at: Timestamp,
    pub kind: LineKind,
    /// The name of the fact, change or event.
    #[serde(rename = "type")]
    pub name: String,
    pub id: Option<String>,
    pub date: Option<NaiveDate>,
    pub endpoint_id: Option<EndpointId>,
    pub status: Option<String>,
}

impl TimelineLine {
    fn new(at: Timestamp, kind: LineKind, name: &str) -> Self {
        Self { at, kind, name: name.to_owned(), id: None, date: None, endpoint_id: None, status: None }
    }
}

/// The tables of timelines.
#[derive(Clone)]
pub struct Timelines {
    contacts: Contacts,
    records: RecordReader,
    events: Table,
    deliveries: Table,
    outbox: Table,
}

impl Timelines {
    /// The tables that the environment names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self {
            contacts: Contacts::new(env, db)?,
            records: RecordReader::new(env, db)?,
            events: Table::new(env, db, "EVENTS_TABLE")?,
            deliveries: Table::new(env, db, "DELIVERIES_TABLE")?,
            outbox: Table::new(env, db, "OUTBOX_TABLE")?,
        })
    }

    /// Reads the timeline of a client, oldest first: the latest [`MAX_LINES`].
    pub async fn read(&self, client: &StoredClient) -> Result<Vec<TimelineLine>, StoreError> {
        let person = Person::of(client, &self.contacts).await?;
        let sources =
            try_join4(self.records(client), self.events(&person), self.deliveries(&person), self.changes(&person));
        let (records, events, deliveries, changes) = sources.await?;
        Ok(latest([records, events, deliveries, changes].concat()))
    }

    /// The parts of facts that are kept. The phase is one that `phase.advanced` or `client.saved` set.
    async fn records(&self, client: &StoredClient) -> Result<Vec<TimelineLine>, StoreError> {
        let facts = self.records.history(&client.client.id).await?.into_iter();
        let lines = facts.map(|fact| {
            let line = TimelineLine::new(fact.at, LineKind::Record, fact.name);
            TimelineLine { id: fact.id, date: fact.date, ..line }
        });
        let phase = client.phase_set().map(|(at, started_on)| {
            let line = TimelineLine::new(at, LineKind::Record, "phase.advanced");
            TimelineLine { date: started_on, ..line }
        });
        Ok(lines.chain(phase).collect())
    }

    /// The events of the feeds that are not erased.
    async fn events(&self, person: &Person) -> Result<Vec<TimelineLine>, StoreError> {
        let mut lines = Vec::new();
        for coach in &person.coaches {
            for query in person.events_of(coach, &self.events) {
                let found = query_up_to(query.scan_index_forward(false), MAX_LINES).await?;
                lines.extend(found.iter().filter_map(event_line));
            }
        }
        Ok(lines)
    }

    async fn deliveries(&self, person: &Person) -> Result<Vec<TimelineLine>, StoreError> {
        let mut lines = Vec::new();
        let contacts = person.contacts.iter().map(ToString::to_string);
        for subject in std::iter::once(person.client.to_string()).chain(contacts) {
            let query = SubjectIndex::Named.query(&self.deliveries, &subject, "").scan_index_forward(false);
            let keys = query_up_to(query, MAX_LINES).await?;
            for item in self.deliveries.read(keys).await? {
                lines.extend(delivery_line(&item)?);
            }
        }
        Ok(lines)
    }

    /// The changes that are still in the outbox.
    async fn changes(&self, person: &Person) -> Result<Vec<TimelineLine>, StoreError> {
        let is_wanted = |item: &Item| item.contains_key("change") && person.is_subject_of(item);
        let found = outbox::entries(&self.outbox, is_wanted).await?;
        Ok(found.iter().filter_map(change_line).collect())
    }
}

fn event_line(item: &Item) -> Option<TimelineLine> {
    let (name, _) = text(item, "type_position").split_once('#')?;
    let at = Timestamp::from_ms(number(item, "stored_at")?);
    Some(TimelineLine { id: Some(text(item, "event_id").to_owned()), ..TimelineLine::new(at, LineKind::Event, name) })
}

fn delivery_line(item: &Item) -> Result<Option<TimelineLine>, StoreError> {
    let endpoint_id = Some(endpoint_of(text(item, "pk"))?);
    let line = Timestamp::parse(text(item, "made_at")).map(|at| {
        let line = TimelineLine::new(at, LineKind::Delivery, text(item, "event_type"));
        let [id, status] = ["id", "status"].map(|member| Some(text(item, member).to_owned()));
        TimelineLine { id, endpoint_id, status, ..line }
    });
    Ok(line)
}

fn change_line(item: &Item) -> Option<TimelineLine> {
    let at = Timestamp::from_ms(number(item, "send_after")?);
    let line = TimelineLine::new(at, LineKind::Change, text(item, "change"));
    Some(TimelineLine { id: Some(text(item, "pk").to_owned()), ..line })
}

/// The latest lines, oldest first.
fn latest(mut lines: Vec<TimelineLine>) -> Vec<TimelineLine> {
    lines.sort_by(|a, b| (a.at, a.kind, &a.name, &a.id).cmp(&(b.at, b.kind, &b.name, &b.id)));
    // An event that names several contacts of the client is found with each.
    lines.dedup();
    lines.split_off(lines.len().saturating_sub(MAX_LINES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{n, s};

    fn item<const N: usize>(members: [(&str, aws_sdk_dynamodb::types::AttributeValue); N]) -> Item {
        members.map(|(name, value)| (name.to_owned(), value)).into()
    }

    #[test]
    fn a_timeline_has_the_latest_lines_oldest_first() {
        let line = |ms: i64, kind| TimelineLine::new(Timestamp::from_ms(ms), kind, "new_client");
        let mut lines: Vec<_> = (0..1_500).rev().map(|ms| line(ms, LineKind::Delivery)).collect();
        lines.push(line(1_499, LineKind::Record));
        lines.push(line(1_499, LineKind::Record));
        let latest = latest(lines);
        assert_eq!((latest.len(), latest[0].at.ms()), (MAX_LINES, 501));
        assert_eq!([&latest[998].kind, &latest[999].kind], [&LineKind::Record, &LineKind::Delivery]);
    }

    #[test]
    fn a_line_is_made_of_plain_attributes_and_an_erased_event_has_none() {
        let event = [("event_id", s("evt_1")), ("type_position", s("new_client#0#1")), ("stored_at", n(5))];
        let line = event_line(&item(event)).unwrap();
        assert_eq!((line.name.as_str(), line.id.as_deref(), line.at.ms()), ("new_client", Some("evt_1"), 5));
        assert!(event_line(&item([("event_id", s("evt_1")), ("stored_at", n(5))])).is_none());
        let made_at = s("2026-05-01T07:00:00.000Z");
        let [name, id, status] = [("event_type", s("new_client")), ("id", s("dlv_1")), ("status", s("failed"))];
        let delivery = [("pk", s("ENDPOINT#we_1")), name, id, status, ("made_at", made_at)];
        let line = serde_json::to_string(&delivery_line(&item(delivery)).unwrap()).unwrap();
        let members =
            "\"type\":\"new_client\",\"id\":\"dlv_1\",\"date\":null,\"endpoint_id\":\"we_1\",\"status\":\"failed\"}";
        assert_eq!(line, format!("{{\"at\":\"2026-05-01T07:00:00.000Z\",\"kind\":\"delivery\",{members}"));
        let change = [("pk", s("chg_1")), ("change", s("client.created")), ("send_after", n(7))];
        let line = change_line(&item(change)).unwrap();
        assert_eq!((line.name.as_str(), line.kind, line.at.ms()), ("client.created", LineKind::Change, 7));
    }
}
