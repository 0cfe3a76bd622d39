//! Normaliser of answers: replaces what differs from run to run, and undoes what was added to the interface since the
//! golden file was written. Everything else stays as it is, the order of members included.

use std::collections::BTreeMap;

use regex_lite::{Captures, Regex};

/// Members that were added to answers, by the route's path, as patterns of their whole text.
pub(super) const ADDED: &[(&str, &str)] = &[
    ("/v1/clients", r#""external_id":(null|"[^"]*")"#),
    ("/v1/clients", r#""updated_at":"[^"]*""#),
    ("/settings/keys", r#""events":(null|\{[^{}]*\})"#),
    // The examples and schemas of contact details, and the bodies of deliveries, where quotes are escaped.
    ("/settings/event-types", r#""external_id":(null|"[^"]*"|\{[^{}]*\})"#),
    ("/settings/event-types", r#""external_id""#),
    (
        // Meanings of members in the schemas of events.
        "/settings/event-types",
        r#""description":"(When the client was created\.|Identifies the check-in\. The list of the client's check-ins has the same id\.|When the client submitted the check-in\.|The name of the phase before\. Null if there was none\.|The name of the new phase\.|When the client moved to the new phase\.|Identifies the message in the application\. The API has no messages\.|When the message was received\.|The share of expected doses that the client logged, in percent, over the automation's window\.|The name of the phase that the client is in\.|Identifies the automation in the application\.|The coach's name for the automation\. It may be empty\.|The client's name\.|The address with which the client signs in\. Null if the client has none\.|The number as it was given\. Null if the client has none\.|Names the client in requests, as `client_id` of the client's record\.)""#,
    ),
    // The group of a catalog's entry, and the entries of the CRM's events.
    ("/settings/event-types", r#""group":"[^"]*""#),
    (
        "/settings/event-types",
        r#"\{"type":"(contact|opportunity|booking)_\w+","kind":.*?"contact_details":.*?"type":"\w+"\}\}\}"#,
    ),
    ("/settings/webhooks", r#"\\"external_id\\":(null|\\"[^"]*\\")"#),
];

/// `Content-Security-Policy` of the documentation's pages.
const DOCUMENTATION_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                                    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Values that were changed in answers: the route's path, today's text and the golden file's.
pub(super) const CHANGED: &[(&str, &str, &str)] = &[
    (
        // A partner key that was given no permissions shows all.
        "/settings/keys",
        r#""scope":"partner","permissions":["clients.read","clients.write","records.read","login_links.create"]"#,
        r#""scope":"partner","permissions":[]"#,
    ),
    (
        // The description of a client in events names the member that was added.
        "/settings/event-types",
        "The client. Name, e-mail address, phone number and external id come with contact details only.",
        "The client. The name, e-mail address and phone number come with contact details only.",
    ),
    (
        // Endpoints and test events take the CRM's events, too.
        "/settings/webhooks",
        "message_received, contact_created, contact_updated, contact_merged, opportunity_created, opportunity_updated, \
         opportunity_stage_changed, booking_created, booking_rescheduled, booking_cancelled",
        "message_received",
    ),
    ("", "/docs/reference names all paths", "/docs names all paths"),
    // Errors and pages of the documentation are told to differ by `Accept`.
    ("", "vary: accept\n", ""),
    ("/docs", "vary: accept-encoding, accept\n", "vary: accept-encoding\n"),
    (
        // Pages of the documentation have a search form and scripts; guides had neither.
        "/docs/guides",
        DOCUMENTATION_POLICY,
        "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (
        // The viewer at /docs had images, and sent no form.
        "/docs",
        DOCUMENTATION_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
];

/// Texts that differ from run to run, and what stands for them. The scenario takes place from noon to one o'clock, so
/// that only its own times have that hour.
const VARYING: &[(&str, &str)] = &[
    (r"(\d{4}-\d\d-\d\dT)12:\d\d:\d\d\.\d{3}Z", "$1<now>"),
    (r"(?:127\.0\.0\.1|localhost):\d+", "<host>"),
    (r"((?:svc|crm)_live_)[0-9A-Za-z]{38}", "$1<secret>"),
    (r"((?:svc|crm)_live_…)[0-9A-Za-z]{4}", "$1<end>"),
    (r"whsec_[0-9A-Za-z+/]{43}=", "whsec_<secret>"),
    (r"v1,[0-9A-Za-z+/]{43}=", "v1,<signature>"),
    (r#""webhook-timestamp":"\d{10}""#, r#""webhook-timestamp":"<now>""#),
    (r#""duration_ms":\d+"#, r#""duration_ms":<number>"#),
    (r#""temp_password":"[^"]{12,}""#, r#""temp_password":"<secret>""#),
    (r"(/intake/|/login/|#token=)[0-9A-Za-z_.-]{20,}", "$1<secret>"),
    (r#""(request_id|event_id)":"[^"]+""#, r#""$1":"<id>""#),
    // Longer than a UUID, which is the cursor of a list by id.
    (r#""next_cursor":"[A-Za-z0-9_-]{37,}""#, r#""next_cursor":"<cursor>""#),
    (r#""(x|kid)":"[0-9A-Za-z_-]{16,}""#, r#""$1":"<key>""#),
    (r"(?m)^(x-request-id|apigw-requestid|etag): .+$", "$1: <value>"),
    (r";r=\d+;t=\d+", ";r=<number>;t=<number>"),
];

/// Ids that the service makes. Each gets a number, so that the same id is the same in all answers.
const IDS: &str = r"(client|evt|we|key|intake|recovery|dlv|del|chg)_[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[78][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}";

/// Headers that the transport sets.
const TRANSPORT: [&str; 3] = ["date", "content-length", "connection"];

/// The normaliser of one walk, with the ids that it has met.
pub(super) struct Normaliser {
    varying: Vec<(Regex, &'static str)>,
    ids: Regex,
    met: BTreeMap<String, usize>,
}

impl Normaliser {
    pub(super) fn new() -> Self {
        let varying = VARYING.iter().map(|(pattern, text)| (Regex::new(pattern).unwrap(), *text)).collect();
        Self { varying, ids: Regex::new(IDS).unwrap(), met: BTreeMap::new() }
    }

    /// The headers and body of an answer at a path.
    pub(super) fn normalise(&mut self, path: &str, text: &str) -> String {
        let known = undone(path, text);
        let same = self.varying.iter().fold(known, |text, (varying, by)| varying.replace_all(&text, *by).into_owned());
        let number = |found: &Captures<'_>| {
            // Ids of the scenario's own.
            if found[0].starts_with("00000000-") || found[0].ends_with(&"0".repeat(32)) {
                return found[0].to_owned();
            }
            let next = self.met.len() + 1;
            let number = *self.met.entry(found[0].to_owned()).or_insert(next);
            format!("<{} {number}>", found.get(1).map_or("uuid", |kind| kind.as_str()))
        };
        self.ids.replace_all(&same, number).into_owned()
    }
}

/// An answer's text as it was before the members of [`ADDED`] and the values of [`CHANGED`].
fn undone(path: &str, text: &str) -> String {
    let of_path = |route: &str| path.starts_with(route);
    let changed = CHANGED.iter().filter(|(route, ..)| of_path(route));
    let text = changed.fold(text.to_owned(), |text, (_, now, before)| text.replace(now, before));
    ADDED.iter().filter(|(route, _)| of_path(route)).fold(text, |text, (_, member)| {
        // A member goes with the comma before it, or behind it if it is the first.
        let without = Regex::new(&format!(",(?:{member})")).unwrap().replace_all(&text, "").into_owned();
        Regex::new(&format!(r"([{{\[])(?:{member}),?")).unwrap().replace_all(&without, "$1").into_owned()
    })
}

/// Returns true for a header that is compared.
pub(super) fn is_compared(header: &str) -> bool {
    !TRANSPORT.contains(&header)
}

#[test]
fn only_what_differs_from_run_to_run_is_replaced() {
    let id = |end: &str| format!("client_{}{end}", "0a".repeat(15));
    let mut normaliser = Normaliser::new();
    let mut same = |text: &str| normaliser.normalise("/v1/ping", text);
    for (text, normal) in [
        (id("01"), "<client 1>"),
        (id("02"), "<client 2>"),
        (id("01"), "<client 1>"),
        ("2040-01-02T12:34:56.789Z".to_owned(), "2040-01-02T<now>"),
        ("svc_live_…aB3d".to_owned(), "svc_live_…<end>"),
    ] {
        assert_eq!(same(&text), normal);
    }
    for kept in [
        "2040-01-02T09:00:00.000Z",
        "2040-01-02T12:34:56Z",
        "2040-01-02",
        "client_1",
        "00000000-0000-7000-8000-000000000001",
        r#"{"external_id":null,"b":[],"a":{}}"#,
        r#""next_cursor":null"#,
    ] {
        assert_eq!(same(kept), kept);
    }
}

#[test]
fn an_added_member_is_taken_out_wherever_it_stands_and_nothing_else() {
    let mut normaliser = Normaliser::new();
    for added in [r#"{"a":1,"external_id":null}"#, r#"{"external_id":"x","a":1}"#, r#"{"a":1,"updated_at":"now"}"#] {
        assert_eq!(normaliser.normalise("/v1/clients/c1", added), r#"{"a":1}"#);
        assert_eq!(normaliser.normalise("/v1/crm/contacts", added), added);
    }
    let key = r#"{"scope":"partner","permissions":["clients.read"],"events":{"types":["new_client"]}}"#;
    let without_events = r#"{"scope":"partner","permissions":["clients.read"]}"#;
    assert_eq!(normaliser.normalise("/settings/keys", key), without_events);
    let body = r#"{"body":"{\"client\":{\"id\":\"c\",\"phone\":null,\"external_id\":null},\"a\":1}"}"#;
    let without = r#"{"body":"{\"client\":{\"id\":\"c\",\"phone\":null},\"a\":1}"}"#;
    assert_eq!(normaliser.normalise("/settings/webhooks/we_1/deliveries/d", body), without);
}
