//! The export of a client: every item about the client and about the contacts that the client is or was. Sealed members
//! are opened by the modules that sealed them. Passwords, tokens, hashes and signatures are left out, at any depth.
//!
//! 1. `read` Reads the contacts, and by them one source after the other: see `Exporter::sources`.
//!
//! Left out besides: login links, which no index finds and which hold ids alone; the busy intervals of bookings, which
//! are times alone; ids of others who share an address.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::email::{Email, EmailKey};
use runtime::{BoxError, Environment};
use serde_json::{Map, Value, json};

use super::person::Person;
use crate::audit::lines_about;
use crate::client::StoredClient;
use crate::contact::Contacts;
use crate::db::{Db, Item, StoreError, Table, query_all, sk_of, text};
use crate::delivery::SubjectIndex;
use crate::vault::Vault;
use crate::{claim, delivery, event_feed, outbox, record, request_log, stored_mail};

/// Members that are left out wherever they are: in items, and in what was sealed.
const SECRETS: [&str; 13] = [
    // The key of a recorded answer: a hash of the idempotency key.
    "claim",
    "credential",
    "fingerprint",
    "idempotency_key_sha256",
    "intake_token",
    "intake_url",
    "login_url",
    "password",
    "phc",
    "secret",
    "signature",
    "temp_password",
    "token_sha256",
];
/// Members of a recorded answer that are left out: the hash of the idempotency key, and the token of the lease.
const SECRETS_OF_CLAIMS: [&str; 2] = ["pk", "owner"];
/// Targets that one query of requests compares with.
const MAX_TARGETS: usize = 100;

/// The items of each table, as JSON. A table without an item is there, too.
pub type ExportedTables = BTreeMap<&'static str, Vec<Value>>;

/// Opens a binary attribute of an item, which a path such as `attempts.excerpt` names. `None`: it is left out.
type Open = fn(&Vault, &Item, &str, &[u8]) -> Result<Option<Value>, StoreError>;

/// The same of one item, by the attribute's path.
type OpenAt<'a> = &'a dyn Fn(&str, &[u8]) -> Result<Option<Value>, StoreError>;

/// The items of a table about a person.
struct Source {
    table: &'static str,
    items: Vec<Item>,
    open: Open,
    left_out: &'static [&'static str],
}

impl Source {
    fn new(table: &'static str, items: Vec<Item>, open: Open) -> Self {
        Self { table, items, open, left_out: &[] }
    }
}

/// The tables of exports.
#[derive(Clone)]
pub struct Exporter {
    vault: Vault,
    contacts: Contacts,
    records: record::RecordReader,
    clients: Table,
    crm: Table,
    claims: Table,
    outbox: Table,
    deliveries: Table,
    events: Table,
    workspaces: Table,
    requests: Table,
}

impl Exporter {
    /// The tables that the environment names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        let table = |variable| Table::new(env, db, variable);
        Ok(Self {
            vault: vault.clone(),
            contacts: Contacts::new(env, db)?,
            records: record::RecordReader::new(env, db)?,
            clients: table("CLIENTS_TABLE")?,
            crm: table("CRM_TABLE")?,
            claims: table("IDEMPOTENCY_TABLE")?,
            outbox: table("OUTBOX_TABLE")?,
            deliveries: table("DELIVERIES_TABLE")?,
            events: table("EVENTS_TABLE")?,
            workspaces: table("WORKSPACES_TABLE")?,
            requests: table("REQUESTS_TABLE")?,
        })
    }

    /// Reads everything that is stored about a client.
    pub async fn read(&self, client: &StoredClient) -> Result<ExportedTables, StoreError> {
        let person = Person::of(client, &self.contacts).await?;
        let sources = self.sources(client, &person).await?;
        sources.into_iter().map(|source| Ok((source.table, shown(source, &self.vault)?))).collect()
    }

    /// All items about a person.
    async fn sources(&self, client: &StoredClient, person: &Person) -> Result<[Source; 9], StoreError> {
        let claims = Source::new("idempotency", self.claims(client, person).await?, claim::open_member);
        Ok([
            Source::new("clients", self.clients(client).await?, plain),
            Source::new("records", self.records.items(&person.client).await?, record::open_member),
            Source::new("crm", self.crm(person).await?, plain),
            Source { left_out: &SECRETS_OF_CLAIMS, ..claims },
            Source::new("outbox", self.outbox(person).await?, outbox::open_member),
            Source::new("deliveries", self.deliveries(person).await?, delivery::open_member),
            Source::new("events", self.events(person).await?, event_feed::open_member),
            Source::new("workspaces", self.workspaces(client, person).await?, stored_mail::open_member),
            Source::new("requests", self.requests(person).await?, plain),
        ])
    }

    /// The client's record and intake, and what the client holds: an address, an external id.
    async fn clients(&self, client: &StoredClient) -> Result<Vec<Item>, StoreError> {
        let own = client.client.id.as_str();
        let mut items = self.clients.read(client.keys()).await?;
        items.iter_mut().for_each(|item| keep_holder(item, |holder| holder == own));
        Ok(items)
    }

    /// The contacts with their addresses, opportunities and events.
    async fn crm(&self, person: &Person) -> Result<Vec<Item>, StoreError> {
        let (mut own, mut about) = (Vec::new(), Vec::new());
        for contact in &person.contacts {
            let keys = self.contacts.keys_of(contact).await?;
            own.extend(keys.own);
            about.extend(keys.about);
        }
        let mut items = self.crm.read(unique(own)).await?;
        let ids: Vec<String> = person.contacts.iter().map(|contact| contact.contact_id.to_string()).collect();
        items.iter_mut().for_each(|item| keep_holder(item, |holder| ids.iter().any(|id| id == holder)));
        // The index may lag.
        let about = self.crm.read(unique(about)).await?;
        items.extend(about.into_iter().filter(|item| person.is_contact_of(item)));
        Ok(items)
    }

    /// The recorded answers: that of the client's creation, and those about the contacts.
    async fn claims(&self, client: &StoredClient, person: &Person) -> Result<Vec<Item>, StoreError> {
        let creation = client.erasure_refs().creation_refs.claim;
        let mut keys: Vec<Item> = creation.iter().map(claim::ClaimKey::item_key).collect();
        for contact in &person.contacts {
            keys.extend(query_all(claim::query_about(&self.claims, contact)).await?);
        }
        let items = self.claims.read(unique(keys)).await?;
        // Another request may use the key by now.
        Ok(items.into_iter().filter(|item| person.is_client_of(item) || person.is_contact_of(item)).collect())
    }

    async fn outbox(&self, person: &Person) -> Result<Vec<Item>, StoreError> {
        outbox::entries(&self.outbox, |item| person.is_subject_of(item)).await
    }

    async fn deliveries(&self, person: &Person) -> Result<Vec<Item>, StoreError> {
        let mut queries = vec![SubjectIndex::Named.query(&self.deliveries, person.client.as_str(), "")];
        for contact in &person.contacts {
            let by = |index: SubjectIndex| index.query(&self.deliveries, &contact.to_string(), "");
            queries.extend([SubjectIndex::Named, SubjectIndex::Merged].map(by));
        }
        let mut keys = Vec::new();
        for query in queries {
            keys.extend(query_all(query).await?);
        }
        self.deliveries.read(unique(keys)).await
    }

    async fn events(&self, person: &Person) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        for query in person.coaches.iter().flat_map(|coach| person.events_of(coach, &self.events)) {
            items.extend(query_all(query).await?);
        }
        Ok(items)
    }

    /// The lines of the coaches' trails about the client, and the mails of a sandbox to the client.
    async fn workspaces(&self, client: &StoredClient, person: &Person) -> Result<Vec<Item>, StoreError> {
        let email = client.client.profile.email.as_ref().map(Email::key);
        let mut items = Vec::new();
        for coach in &person.coaches {
            items.extend(lines_about(&self.workspaces, coach, &person.client).await?);
            for mail in stored_mail::items(&self.workspaces, coach).await? {
                let is_own = match &email {
                    Some(email) => self.is_mail_to(email, &mail)?,
                    None => false,
                };
                items.extend(is_own.then_some(mail));
            }
        }
        Ok(items)
    }

    fn is_mail_to(&self, email: &EmailKey, mail: &Item) -> Result<bool, StoreError> {
        let mail = shown_item(mail, stored_mail::open_member, &self.vault)?;
        let to = mail.get("sealed").and_then(|mail| mail["to"].as_str()).and_then(|to| Email::parse(to).ok());
        Ok(to.is_some_and(|to| to.key() == *email))
    }

    /// The requests whose path names the client or a contact.
    async fn requests(&self, person: &Person) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        for coach in &person.coaches {
            let contacts = person.contacts_of(coach).into_iter().map(|id| id.to_string());
            let targets: Vec<String> = std::iter::once(person.client.to_string()).chain(contacts).collect();
            for targets in targets.chunks(MAX_TARGETS) {
                items.extend(query_all(request_log::query_about(&self.requests, coach, targets)).await?);
            }
        }
        Ok(items)
    }
}

/// An attribute of a table that seals nothing.
fn plain(_: &Vault, _: &Item, _: &str, bytes: &[u8]) -> Result<Option<Value>, StoreError> {
    Ok(Some(json!(bytes)))
}

/// The keys, each once: DynamoDB refuses to read a key twice.
fn unique(keys: Vec<Item>) -> Vec<Item> {
    let named = keys.into_iter().map(|key| ((text(&key, "pk").to_owned(), sk_of(&key).to_owned()), key));
    named.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// Removes the ids of other holders from the item of an address or external id.
fn keep_holder(item: &mut Item, is_own: impl Fn(&str) -> bool) {
    if item.get("holder").and_then(|holder| holder.as_s().ok()).is_some_and(|holder| !is_own(holder)) {
        item.remove("holder");
    }
    if let Some(AttributeValue::Ss(holders)) = item.get_mut("later_holders") {
        holders.retain(|holder| is_own(holder));
    }
}

/// The items of a source as JSON, in the order of their keys.
fn shown(mut source: Source, vault: &Vault) -> Result<Vec<Value>, StoreError> {
    source.items.sort_by(|a, b| (text(a, "pk"), sk_of(a)).cmp(&(text(b, "pk"), sk_of(b))));
    source.items.dedup_by(|a, b| (text(a, "pk"), sk_of(a)) == (text(b, "pk"), sk_of(b)));
    let items = source.items.iter().map(|item| {
        let mut shown = shown_item(item, source.open, vault)?;
        shown.retain(|name, _| !source.left_out.contains(&name.as_str()));
        let mut shown = Value::Object(shown);
        remove_secrets(&mut shown);
        Ok(shown)
    });
    items.collect()
}

fn shown_item(item: &Item, open: Open, vault: &Vault) -> Result<Map<String, Value>, StoreError> {
    shown_members(item, "", &|path, bytes| open(vault, item, path, bytes))
}

/// The members of an item, or of a map at a path, as JSON. `open` reads binary members.
fn shown_members(members: &Item, path: &str, open: OpenAt<'_>) -> Result<Map<String, Value>, StoreError> {
    let mut shown = Map::new();
    for (name, value) in members {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if let Some(value) = shown_value(value, &path, open)? {
            shown.insert(name.clone(), value);
        }
    }
    Ok(shown)
}

fn shown_value(value: &AttributeValue, path: &str, open: OpenAt<'_>) -> Result<Option<Value>, StoreError> {
    let number = |number: &String| serde_json::from_str(number).unwrap_or_else(|_| json!(number));
    Ok(Some(match value {
        AttributeValue::S(text) => json!(text),
        AttributeValue::N(digits) => number(digits),
        AttributeValue::Bool(flag) => json!(flag),
        AttributeValue::Ss(texts) => json!(texts),
        AttributeValue::Ns(numbers) => numbers.iter().map(number).collect(),
        AttributeValue::M(members) => Value::Object(shown_members(members, path, open)?),
        AttributeValue::L(values) => {
            let values = values.iter().filter_map(|value| shown_value(value, path, open).transpose());
            Value::Array(values.collect::<Result<_, _>>()?)
        }
        AttributeValue::B(bytes) => return open(path, bytes.as_ref()),
        // No table has another kind.
        _ => Value::Null,
    }))
}

/// Removes the members that are left out, at any depth.
fn remove_secrets(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !SECRETS.contains(&name.as_str()));
            members.values_mut().for_each(remove_secrets);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_secrets),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::db::{b, n, s};

    fn item<const N: usize>(members: [(&str, AttributeValue); N]) -> Item {
        members.map(|(name, value)| (name.to_owned(), value)).into()
    }

    fn open(path: &str, bytes: &[u8]) -> Result<Option<Value>, StoreError> {
        Ok((path != "fingerprint").then(|| json!(format!("{path}={}", bytes.len()))))
    }

    #[test]
    fn an_item_keeps_the_names_of_its_attributes_and_its_opened_members() {
        let attempt = AttributeValue::M(item([("at", s("t")), ("excerpt", b(vec![1, 2]))]));
        let counts = AttributeValue::M(HashMap::from([("sealed".to_owned(), b(vec![3]))]));
        let members = [
            ("pk", s("CLIENT#c1")),
            ("version", n(3)),
            ("set_at", n("1777618800000.5")),
            ("deleted", AttributeValue::Bool(true)),
            ("logged", AttributeValue::Ns(vec!["430".to_owned()])),
            ("coaches", AttributeValue::Ss(vec!["ada".to_owned()])),
            ("attempts", AttributeValue::L(vec![attempt])),
            ("counts", counts),
            ("sealed", b(vec![1])),
            ("fingerprint", b(vec![1])),
        ];
        let expected = json!({
            "pk": "CLIENT#c1", "version": 3, "set_at": 1_777_618_800_000.5, "deleted": true, "logged": [430],
            "coaches": ["ada"], "attempts": [{ "at": "t", "excerpt": "attempts.excerpt=2" }],
            "counts": { "sealed": "counts.sealed=1" }, "sealed": "sealed=1",
        });
        assert_eq!(Value::Object(shown_members(&item(members), "", &open).unwrap()), expected);
    }

    #[test]
    fn secrets_are_left_out_at_any_depth_and_nothing_else() {
        let mut answer = json!({
            "body": { "client_id": "c1", "temp_password": "x", "intake_url": "x", "email": "e" },
            "stage": {
                "password": "x", "intake_token": "x", "full_name": "F",
                "change": { "detail": { "credential": { "phc": "x" }, "intake": { "id": "i", "token_sha256": "x" } } },
            },
            "creation_refs": { "claim": "x", "claimed_at": "t" },
            "attempts": [{ "signature": "x", "at": "t" }],
            "login_url": "x", "idempotency_key_sha256": "x", "secret": "x", "fingerprint": "x", "phc": "x",
        });
        remove_secrets(&mut answer);
        let expected = json!({
            "body": { "client_id": "c1", "email": "e" },
            "stage": { "full_name": "F", "change": { "detail": { "intake": { "id": "i" } } } },
            "creation_refs": { "claimed_at": "t" },
            "attempts": [{ "at": "t" }],
        });
        assert_eq!(answer, expected);
    }

    #[test]
    fn a_key_is_read_once_and_other_holders_of_an_address_are_left_out() {
        let key = |sk: &str| item([("pk", s("COACH#ada")), ("sk", s(sk))]);
        assert_eq!(unique(vec![key("b"), key("a"), key("b")]), [key("a"), key("b")]);
        let holders = |ids: &[&str]| AttributeValue::Ss(ids.iter().map(|id| (*id).to_owned()).collect());
        let mut address = item([("holder", s("c1")), ("later_holders", holders(&["c2", "c3"]))]);
        keep_holder(&mut address, |id| id == "c3");
        assert_eq!(address, item([("later_holders", holders(&["c3"]))]));
    }
}
