//! Tenancy: on every route, the id of another coach's record is answered as an id that nobody has.
//!
//! The walk is one through a sandbox, which has all routes. It takes routes and the kinds of their ids from `ROUTES`,
//! and bodies from the examples of the OpenAPI document. A new route needs nothing here, unless its body or query names
//! a record in a new field: see `FIELDS`.

use std::collections::BTreeMap;

use domain::id_kind::IdKind;
use domain::mode::Mode;
use edge::routes::{Access, ROUTES, Route};
use serde_json::{Map, Value, json};

use crate::crm::bookings::event;
use crate::sandbox;
use crate::world::{Caller, Fact, Receiver, Reply, World, uuid};

const HERE: &str = "tests/operations/tenancy.rs";

/// Ids by the kind of their record.
type Ids = BTreeMap<&'static str, String>;

/// Records that a field or a parameter names. [`Tenant::new`] creates a record of each kind, as of each kind of
/// [`IdKind`] that a path names.
const FIELDS: [(&str, &str); 11] = [
    ("client_id", IdKind::Client.noun()),
    // An event is about a client or a contact: see tests/sandbox/events.rs.
    ("contact_id", ""),
    ("contactId", IdKind::Contact.noun()),
    ("leadId", IdKind::Contact.noun()),
    ("calendarId", "calendar"),
    ("bookingId", IdKind::Booking.noun()),
    ("endpoint_id", IdKind::Endpoint.noun()),
    ("webhook_id", "event"),
    ("key_id", IdKind::Key.noun()),
    ("request_id", "request"),
    // A coach's own id for a client, which other coaches may use as well: see tests/partner/clients/external_ids.rs.
    ("external_id", ""),
];

/// A coach with one record of each kind, and the coach's callers.
pub(super) struct Tenant {
    ids: Ids,
    partner: Caller,
    crm: Caller,
    reader: Caller,
    settings: Caller,
}

impl Tenant {
    pub(super) async fn new(world: &World, receiver: &Receiver, name: &str, number: u64) -> Self {
        let coach = world.coach(name).await;
        let [contact, opportunity, booking, calendar, workflow] = [1, 2, 3, 4, 5].map(|kind| uuid(100 * number + kind));
        let client = format!("client_{number:032}");
        let endpoint = coach.endpoint(&receiver.url(), "identifiers").await;
        let at = world.midnight_in(2).await;
        world
            .apply([
                Fact::pipeline(name),
                Fact::contact(name, &contact),
                Fact::calendar(name, &calendar),
                Fact::opportunity(name, &opportunity, &contact),
                Fact::workflow(name, &workflow),
                event(name, &booking, None, at, 60)
                    .with("calendar_id", calendar.as_str())
                    .with("lead_id", contact.as_str()),
                Fact::client(name, &client),
            ])
            .await;
        let delivery = coach.deliveries(&endpoint).await.remove(0);
        let [delivery, event] = ["id", "webhook_id"].map(|member| delivery[member].as_str().unwrap().to_owned());
        let reader = crate::event_feed::reader(&coach, "contact_details").await;
        let (crm, settings) = (coach.crm_key().await, coach.settings().await);
        let made = coach.new_key(json!({ "name": "One to look at", "scope": "partner" })).await;
        let (partner, key) = (world.anonymous().with_bearer(made.str("key")), made.str("id").to_owned());
        let request = kept_request(&partner).await;
        let ids = [
            (IdKind::Client.noun(), client),
            (IdKind::Contact.noun(), contact),
            (IdKind::Opportunity.noun(), opportunity),
            (IdKind::Booking.noun(), booking),
            (IdKind::Key.noun(), key),
            (IdKind::Endpoint.noun(), endpoint.id),
            (IdKind::Delivery.noun(), delivery),
            ("calendar", calendar),
            ("workflow", workflow),
            ("event", event),
            ("request", request),
        ];
        Self { ids: ids.into(), partner, crm, reader, settings }
    }

    fn caller(&self, route: &Route) -> &Caller {
        match route.access {
            Access::Partner(_) => &self.partner,
            Access::Crm(_) => &self.crm,
            Access::Events => &self.reader,
            Access::Session => &self.settings,
            Access::AnyKey | Access::Sandbox => &self.partner,
            Access::Assistant => unreachable!("assistants have tests of their own"),
            Access::Public => unreachable!("a public route has no tenant"),
        }
    }

    /// Answers to all reads without filters, apart from the times at which keys were used.
    pub(super) async fn reads(&self) -> Vec<Value> {
        let mut answers = Vec::new();
        for route in reads() {
            let path =
                marks(route).fold(route.path.to_owned(), |path, (mark, kind)| path.replace(mark, &self.ids[kind]));
            let query = if route.path == "/v1/events/samples" { "?type=new_client" } else { "" };
            let mut body = self.caller(route).get(&format!("{path}{query}")).await.body;
            for key in body.get_mut("keys").and_then(Value::as_array_mut).into_iter().flatten() {
                key["last_used_at"].take();
            }
            if route.path == "/v1/events" {
                // The cursor of a feed has the time at which it was given.
                body["next_cursor"].take();
            }
            answers.push(body);
        }
        answers
    }
}

/// All routes on which the caller is a coach.
pub(super) fn routes() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| !matches!(route.access, Access::Public | Access::Assistant))
}

/// All of these that read. Without a removal of test data there is none to read, and its refusal would be in the
/// request log.
pub(super) fn reads() -> impl Iterator<Item = &'static Route> {
    routes().filter(|route| route.method == "GET" && route.path != "/v1/test/data")
}

/// The ids in a path, each as its mark `{id}` and the kind of its record.
fn marks(route: &'static Route) -> impl Iterator<Item = (&'static str, &'static str)> {
    let marks = route.path.split('/').filter(|part| part.starts_with('{'));
    marks.zip(route.ids.iter().map(|kind| kind.noun()))
}

fn looks_like_an_id(name: &str, schema: &Value) -> bool {
    schema["format"] == "uuid" || name == "id" || ["Id", "Ids", "_id", "_ids"].iter().any(|end| name.ends_with(end))
}

/// A request whose ids are still marks.
struct Template {
    route: &'static Route,
    path: String,
    body: Option<Value>,
    /// Each id: its mark, and the kind of record that the id names.
    spots: Vec<(String, &'static str)>,
    /// Fields and parameters that `FIELDS` does not know.
    unknown: Vec<String>,
}

impl Template {
    /// Creates the request of a route with the body of an example and every id that the document describes.
    fn new(document: &Value, route: &'static Route) -> Self {
        let operation = &document["paths"][route.path][route.method.to_lowercase()];
        let spots = marks(route).map(|(mark, kind)| (mark.to_owned(), kind)).collect();
        let mut template = Self { route, path: route.path.to_owned(), body: None, spots, unknown: Vec::new() };
        let described = operation["parameters"].as_array().into_iter().flatten();
        for parameter in described.filter(|parameter| parameter["in"] == "query") {
            let name = parameter["name"].as_str().unwrap();
            let mark = format!("{{query {name}}}");
            if looks_like_an_id(name, &parameter["schema"]) && template.add(mark.clone(), name) {
                let separator = if template.path.contains('?') { '&' } else { '?' };
                template.path.push_str(&format!("{separator}{name}={mark}"));
            }
        }
        let content = &operation["requestBody"]["content"]["application/json"];
        if let Some(examples) = content["examples"].as_object() {
            let mut body = examples.values().next().map_or(json!({}), |example| example["value"].clone());
            let schema = content["schema"]["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
            let fields = document.pointer(schema).unwrap()["properties"].as_object().into_iter().flat_map(Map::iter);
            for (name, _) in fields.filter(|(name, schema)| looks_like_an_id(name, schema)) {
                let mark = format!("{{body {name}}}");
                if template.add(mark.clone(), name) {
                    body[name] = json!(mark);
                }
            }
            template.body = Some(body);
        }
        template
    }

    /// Notes an id in a field or parameter. Returns true if the id names a record.
    fn add(&mut self, mark: String, field: &str) -> bool {
        match FIELDS.iter().find(|(known, _)| *known == field) {
            Some((_, "")) => return false,
            Some((_, kind)) => self.spots.push((mark, kind)),
            None => self.unknown.push(field.to_owned()),
        }
        true
    }

    /// Sends a coach's request. Bit `i` of `chosen` puts the i-th id from `others` in the place of the coach's own.
    async fn send(&self, world: &World, coach: &Tenant, chosen: usize, others: &Ids) -> String {
        let filled = |text: &str| {
            self.spots.iter().enumerate().fold(text.to_owned(), |text, (i, (mark, kind))| {
                let ids = if is_chosen(chosen, i) { others } else { &coach.ids };
                text.replace(mark, &ids[kind])
            })
        };
        let mut call = coach.caller(self.route).call(self.route.method, &filled(&self.path));
        if let Some(body) = &self.body {
            call = call.body(filled(&body.to_string())).header("content-type", "application/json");
        }
        if self.route.method != "GET" {
            call = call.idempotent(&format!("tenancy-{}", world.number()));
        }
        let Reply { status, mut body, .. } = call.await;
        for own in ["request_id", "event_id"] {
            body[own].take();
        }
        format!("{status} {body}")
    }

    /// Lists wrong answers to requests that name records of another coach.
    async fn faults(&self, world: &World, coach: &Tenant, other: &Tenant) -> Vec<String> {
        let route = self.route;
        let add = |place| format!("{route} takes the id `{place}`: add its record to FIELDS in {HERE}");
        let mut faults: Vec<String> = self.unknown.iter().map(add).collect();
        if !faults.is_empty() || self.spots.is_empty() {
            return faults;
        }
        let nobodys: Ids = coach.ids.iter().map(|(kind, id)| (*kind, like(id))).collect();
        let mut unknown_answers = Vec::new();
        for chosen in 1..1 << self.spots.len() {
            let theirs = self.send(world, coach, chosen, &other.ids).await;
            let unknown = self.send(world, coach, chosen, &nobodys).await;
            if theirs != unknown {
                let marks = self.spots.iter().enumerate().filter(|(i, _)| is_chosen(chosen, *i));
                let marks: Vec<&str> = marks.map(|(_, (mark, _))| mark.as_str()).collect();
                faults.push(format!(
                    "{route}: another coach's {} is answered with {theirs}, an unknown one with {unknown}: read the \
                     record by the caller's coach and its id",
                    marks.join(" and ")
                ));
            }
            unknown_answers.push(unknown);
        }
        if !unknown_answers[0].starts_with("404") && route.path.contains('{') {
            faults.push(format!("{route}: an unknown id is answered with {} in place of 404", unknown_answers[0]));
        }
        let own = self.send(world, coach, 0, &nobodys).await;
        if unknown_answers.contains(&own) {
            faults.push(format!(
                "{route}: the coach's own ids are answered as unknown ones, with {own}: complete Tenant::new in {HERE}"
            ));
        }
        faults
    }
}

fn is_chosen(chosen: usize, i: usize) -> bool {
    chosen >> i & 1 == 1
}

/// The id of a request in the log of a key. A query has to encode `+` alone, so another request is made instead.
async fn kept_request(key: &Caller) -> String {
    loop {
        let refused = key.get("/v1/clients/nobody").await.refused(404, "not_found");
        let id = refused.header("x-request-id").unwrap();
        if !id.contains('+') {
            return id.to_owned();
        }
    }
}

/// An id of the same form that no record has.
fn like(id: &str) -> String {
    format!("{}fedcba", &id[..id.len() - 6])
}

#[tokio::test]
async fn an_id_of_another_coachs_record_is_answered_as_an_unknown_one_on_every_route() {
    let (world, receiver) = (sandbox::start(Mode::Test).await, Receiver::start().await);
    let ada = Tenant::new(&world, &receiver, "ada", 1).await;
    let bob = Tenant::new(&world, &receiver, "bob", 2).await;
    let (document, before) = (docs::document::document(Mode::Test), ada.reads().await);
    let mut all: Vec<&Route> = routes().collect();
    // A record has to exist until the last request that names it.
    all.sort_by_key(|route| route.method == "DELETE");
    let mut faults = Vec::new();
    for route in all {
        faults.extend(Template::new(&document, route).faults(&world, &bob, &ada).await);
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    world.settle().await;
    assert_eq!(ada.reads().await, before, "another coach's requests changed something");
}

#[tokio::test]
async fn no_read_shows_a_record_of_another_coach() {
    let (world, receiver) = (sandbox::start(Mode::Test).await, Receiver::start().await);
    let ada = Tenant::new(&world, &receiver, "ada", 1).await;
    let bob = Tenant::new(&world, &receiver, "bob", 2).await;
    let shown = Value::from(bob.reads().await).to_string();
    for (kind, id) in &bob.ids {
        assert!(shown.contains(id), "no read shows the {kind} that Tenant::new in {HERE} creates");
    }
    for (route, answer) in reads().zip(bob.reads().await) {
        for (kind, id) in &ada.ids {
            assert!(!answer.to_string().contains(id), "{route} shows another coach's {kind}: {answer}");
        }
    }
}
