//! The integrators' guides: Markdown files in `pages`, rendered to HTML at the first request.
//!
//! The operators' guides in `infra/guides` are not served. The tests here check both against the code's constants.

use std::collections::BTreeMap;

use edge::Resource;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::layout;

/// `Content-Security-Policy` of a guide: text with our style sheet, no scripts.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A guide: its name in the path, its title and its Markdown.
pub(crate) struct Guide {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! guide {
    ($name:literal, $title:literal) => {
        Guide { name: $name, title: $title, text: include_str!(concat!("../pages/", $name, ".md")) }
    };
}

/// Code of receivers, which replaces `<<name>>` in a guide. The files are those that the tests run.
const RECEIVERS: [(&str, &str); 4] = [
    ("receiver.py", include_str!("../../../tests/receivers/receiver.py")),
    ("receiver.mjs", include_str!("../../../tests/receivers/receiver.mjs")),
    ("receiver.go", include_str!("../../../tests/receivers/receiver.go")),
    ("receiver.rs", include_str!("../../../tests/receivers/receiver.rs")),
];

/// All guides, in reading order.
pub(crate) static GUIDES: [Guide; 7] = [
    guide!("getting-started", "Getting started"),
    guide!("crm", "The CRM"),
    guide!("idempotency", "Idempotency"),
    guide!("errors", "Errors"),
    guide!("limits", "Limits"),
    guide!("events", "Events"),
    guide!("verifying", "Verify webhooks"),
];

impl Guide {
    /// Path at which the guide is served.
    pub(crate) fn path(&self) -> String {
        format!("/docs/guides/{}", self.name)
    }

    /// The Markdown with the code of the receivers inserted.
    fn with_receivers(&self) -> String {
        RECEIVERS.iter().fold(self.text.to_owned(), |text, (name, file)| {
            text.replace(&format!("<<{name}>>\n"), without_header(file))
        })
    }
}

/// Cuts the header of a file, which ends at the first blank line.
fn without_header(file: &str) -> &str {
    file.split_once("\n\n").map_or(file, |(_, rest)| rest)
}

/// Creates the guides' pages, by name.
pub(crate) fn pages() -> BTreeMap<&'static str, Resource> {
    let page = |(i, guide): (usize, &'static Guide)| {
        let next = GUIDES.get(i + 1);
        (guide.name, Resource::new(move || page(guide, next), "text/html; charset=utf-8", POLICY))
    };
    GUIDES.iter().enumerate().map(page).collect()
}

fn page(guide: &Guide, next: Option<&Guide>) -> String {
    let mut main = format!("<article>\n{}</article>\n", render_html(&guide.with_receivers()));
    if let Some(next) = next {
        main.push_str(&format!("<p class=\"next\">Next: <a href=\"{}\">{}</a></p>", next.path(), next.title));
    }
    layout::page(guide.title, &guide.path(), "", &main)
}

/// Renders Markdown as HTML. Headings have ids to link to. Code and tables scroll by themselves on a narrow screen, by
/// keyboard too.
fn render_html(text: &str) -> String {
    let events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    let with_ids = events.iter().enumerate().map(|(i, event)| match event {
        Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
            let id = Some(CowStr::from(slug(&events[i + 1..])));
            Event::Start(Tag::Heading { level: *level, id, classes: classes.clone(), attrs: attrs.clone() })
        }
        event => event.clone(),
    });
    let mut html = String::new();
    html::push_html(&mut html, with_ids);
    html.replace("<pre>", "<pre tabindex=\"0\">")
        .replace("<table>", "<div class=\"table\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>")
}

/// Builds the id of a heading from its words. `after` starts behind the heading's start tag.
fn slug(after: &[Event<'_>]) -> String {
    let inside = after.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let words: String = inside
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.to_lowercase()),
            _ => None,
        })
        .collect();
    let parts: Vec<&str> =
        words.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use domain::api_key::Permission;
    use domain::assertion::ASSERTION_LIFE;
    use domain::audit::AuditAction;
    use domain::availability::{MAX_CANDIDATES, MAX_SLOTS};
    use domain::client::{
        MAX_CLIENT_EMAIL_CHARS, MAX_EXTERNAL_ID_CHARS, MAX_GOALS_CHARS, MAX_HEALTH_NOTES_CHARS, MAX_HEIGHT_IN,
        MAX_NAME_CHARS, MAX_PHONE_CHARS, MAX_WEIGHT_LBS,
    };
    use domain::compliance::WINDOW_DAYS;
    use domain::contact::MAX_CONTACT_NAME_CHARS;
    use domain::delivery::{CHAIN_RETENTION, DELIVERY_RETENTION, RECOVERY_LEASE, RECOVERY_PAUSE};
    use domain::email::MAX_EMAIL_CHARS;
    use domain::endpoint::{MAX_DESCRIPTION_CHARS, MAX_ENDPOINTS};
    use domain::event::{EventCatalog, EventKind};
    use domain::fact::{Fact, Known};
    use domain::id::EventId;
    use domain::idempotency::{MAX_KEY_CHARS, RETENTION, SECRET_RETENTION};
    use domain::key::{MAX_KEY_NAME_CHARS, MAX_LIVE_KEYS, ROTATION_OVERLAP};
    use domain::list::{AUDIT_PAGE, CHECK_IN_PAGE, CLIENT_PAGE, CRM_PAGE, DAILY_LOG_PAGE, DELIVERY_PAGE, KEY_PAGE};
    use domain::login_link::LOGIN_LINK_LIFE;
    use domain::opportunity::{MAX_LOST_REASON_CHARS, MAX_OPPORTUNITY_NAME_CHARS, MAX_VALUE_CENTS};
    use domain::rate_limit::{Limit, WINDOW_S};
    use domain::receiver_url::MAX_URL_CHARS;
    use domain::retry::MAX_ATTEMPTS;
    use domain::signature::{SigningSecret, signature_header};
    use domain::wall_clock::TZ_DATABASE;
    use edge::Code;
    use edge::inbound::{MAX_BODY_BYTES, MAX_JSON_DEPTH};
    use edge::routes::{Access, ROUTES};
    use serde_json::Value;

    use super::*;

    #[test]
    fn headings_have_ids_and_tables_a_frame() {
        let html = render_html("## The `code` of an error\n\n| a |\n|---|\n| 1 < 2 |\n");
        assert!(html.contains("<h2 id=\"the-code-of-an-error\">The <code>code</code> of an error</h2>"), "{html}");
        assert!(
            html.contains("<div class=\"table\"") && html.contains("1 &lt; 2") && html.contains("</table></div>"),
            "{html}"
        );
    }

    /// Folder of the operators' guides.
    const OPERATORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/guides");

    fn links(text: &str) -> impl Iterator<Item = &str> {
        text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap())
    }

    fn heading_ids(text: &str) -> Vec<String> {
        let html = render_html(text);
        html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_guide_begins_with_its_title_and_links_only_to_served_pages() {
        for guide in &GUIDES {
            assert!(guide.text.starts_with(&format!("# {}\n", guide.title)), "{}", guide.name);
            for link in links(guide.text) {
                let (path, section) = link.split_once('#').unwrap_or((link, ""));
                if [layout::REFERENCE, "/openapi.json"].contains(&path) {
                    continue;
                }
                let other =
                    GUIDES.iter().find(|other| path.is_empty() && other.name == guide.name || other.path() == path);
                let other = other.unwrap_or_else(|| panic!("{}: {link}", guide.name));
                assert!(
                    section.is_empty() || heading_ids(other.text).contains(&section.to_owned()),
                    "{}: {link}",
                    guide.name
                );
            }
        }
    }

    #[test]
    fn every_file_in_pages_is_served() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/pages")).unwrap();
        assert_eq!(folder.count(), GUIDES.len());
    }

    #[test]
    fn a_guide_for_operators_links_to_files_and_sections_that_exist() {
        let folder = std::fs::read_dir(OPERATORS).unwrap();
        for page in folder.map(|entry| entry.unwrap().path()) {
            let text = std::fs::read_to_string(&page).unwrap();
            for link in links(&text).filter(|link| !link.starts_with("https://")) {
                let (file, section) = link.split_once('#').unwrap_or((link, ""));
                let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
                assert!(target.exists(), "{}: {link}", page.display());
                let has_section =
                    || heading_ids(&std::fs::read_to_string(&target).unwrap()).contains(&section.to_owned());
                assert!(section.is_empty() || has_section(), "{}: {link}", page.display());
            }
        }
    }

    fn text_of(name: &str) -> String {
        let integrators = GUIDES.iter().find(|guide| guide.name == name).map(|guide| guide.text.to_owned());
        integrators.unwrap_or_else(|| std::fs::read_to_string(format!("{OPERATORS}/{name}.md")).unwrap())
    }

    #[test]
    fn the_guide_to_the_crm_has_every_permission_with_its_routes() {
        let text = text_of("crm");
        for permission in Permission::ALL {
            let mut rows = text.lines().filter(|line| line.starts_with(&format!("| `{}` | ", permission.as_str())));
            let (row, None) = (rows.next().unwrap(), rows.next()) else { panic!("two rows of {permission:?}") };
            let shown: BTreeSet<&str> = row.split('`').skip(3).step_by(2).collect();
            let opened = ROUTES.iter().filter(|route| route.access == Access::Crm(permission));
            let opened: BTreeSet<String> =
                opened.map(|route| format!("{} {}", route.method, route.path.replacen("/v1/crm", "", 1))).collect();
            assert_eq!(shown, opened.iter().map(String::as_str).collect(), "{permission:?}");
        }
    }

    #[test]
    fn the_guide_to_errors_has_every_member() {
        let text = text_of("errors");
        let table = text.split("| Member | Meaning |\n|---|---|\n").nth(1).unwrap().split("\n\n").next().unwrap();
        let shown: BTreeSet<&str> = table.lines().map(|row| row.split('`').nth(1).unwrap()).collect();
        let document = crate::document::document();
        let schema = document["components"]["schemas"]["Error"]["properties"].as_object().unwrap();
        assert_eq!(shown, schema.keys().map(String::as_str).collect());
    }

    #[test]
    fn the_guide_to_errors_has_every_code_with_its_status() {
        let text = text_of("errors");
        for code in Code::ALL {
            let row = format!("| {} | `{code}` | ", code.status().as_u16());
            assert_eq!(text.matches(&row).count(), 1, "{row}");
        }
    }

    #[test]
    fn the_guide_to_limits_agrees_with_the_constants() {
        let text = text_of("limits");
        let sizes = [
            ("clients", CLIENT_PAGE),
            ("check-ins", CHECK_IN_PAGE),
            ("daily logs", DAILY_LOG_PAGE),
            ("the lists of the CRM", CRM_PAGE),
            ("keys", KEY_PAGE),
            ("deliveries", DELIVERY_PAGE),
            ("the audit trail", AUDIT_PAGE),
        ];
        let sizes = sizes.map(|(list, size)| format!("| `limit` of {list} | {} | {} |", size.default, size.max));
        let fields = [
            ("email", MAX_CLIENT_EMAIL_CHARS),
            ("full_name", MAX_NAME_CHARS),
            ("phone", MAX_PHONE_CHARS),
            ("goals", MAX_GOALS_CHARS),
            ("health_notes", MAX_HEALTH_NOTES_CHARS),
            ("external_id", MAX_EXTERNAL_ID_CHARS),
            ("lostReason", MAX_LOST_REASON_CHARS),
        ];
        let fields = fields.map(|(name, max)| format!("| `{name}` | {max} characters |"));
        let others = [
            format!("| `name` of a contact | {MAX_CONTACT_NAME_CHARS} characters |"),
            format!("| `email` of a contact | {MAX_EMAIL_CHARS} characters |"),
            format!("| `name` of an opportunity | {MAX_OPPORTUNITY_NAME_CHARS} characters |"),
            format!("| `valueCents` | 0 to {MAX_VALUE_CENTS}, whole |"),
            format!("at most {} free times", with_comma(MAX_SLOTS)),
            format!("checks at most {} possible times", with_comma(MAX_CANDIDATES)),
            format!("release {TZ_DATABASE} of the IANA time zone database"),
            format!("{} in a calendar minute |", Limit::Requests.per_minute()),
            format!("login-link` | {} in a calendar minute, within the limit above |", Limit::LoginLinks.per_minute()),
            format!("to the settings | {} in a calendar minute |", Limit::SettingsRequests.per_minute()),
            format!("endpoint | {} in a calendar minute, within the limit above |", Limit::TestEvents.per_minute()),
            format!("| 1, for at most {} seconds |", RECOVERY_LEASE.num_seconds()),
            format!("sent in the last | {} minutes |", RECOVERY_PAUSE.num_minutes()),
            format!("q={};w={WINDOW_S}", Limit::Requests.per_minute()),
            format!("at most {} KiB and nests at most {MAX_JSON_DEPTH} levels", MAX_BODY_BYTES / 1024),
            format!("`Idempotency-Key` has 1 to {MAX_KEY_CHARS} characters"),
            format!("| `height_in` | above 0, at most {MAX_HEIGHT_IN} inches |"),
            format!("| `weight_lbs` | above 0, at most {MAX_WEIGHT_LBS} pounds |"),
            format!("| `window_days` of compliance | {} | {} |", WINDOW_DAYS.default, WINDOW_DAYS.max),
            format!("| Live keys of a workspace | {MAX_LIVE_KEYS} |"),
            format!("| Name of a key | {MAX_KEY_NAME_CHARS} characters |"),
            format!("| A replaced key still works for | {} hours |", ROTATION_OVERLAP.num_hours()),
            format!("| Webhook endpoints of a workspace | {MAX_ENDPOINTS} |"),
            format!("| URL of an endpoint | {MAX_URL_CHARS} characters |"),
            format!("| Description of an endpoint | {MAX_DESCRIPTION_CHARS} characters |"),
            format!("| A login link can be used | {} minutes, once |", LOGIN_LINK_LIFE.num_minutes()),
            format!("| Answers under an idempotency key are kept | {} hours |", RETENTION.num_hours()),
            format!("answer of the settings is kept | {} minutes |", SECRET_RETENTION.num_minutes()),
            format!("| Attempts of a delivery | {MAX_ATTEMPTS}, over 27 hours |"),
            format!("| An event can be sent again by hand | {} days |", DELIVERY_RETENTION.num_days()),
            format!("| The delivery log is kept | {} |", days_kept("for deliveries that are sent again")),
        ];
        for phrase in sizes.iter().chain(&fields).chain(&others) {
            assert!(text.contains(phrase), "{phrase}");
        }
    }

    /// How long deliveries are kept, as the guides state it. `condition` names the deliveries that are kept longer.
    fn days_kept(condition: &str) -> String {
        format!("{} days, up to {} more {condition}", DELIVERY_RETENTION.num_days(), CHAIN_RETENTION.num_days())
    }

    #[test]
    fn the_guides_to_events_state_how_long_an_event_can_repeat() {
        let [again, longer] = [DELIVERY_RETENTION, CHAIN_RETENTION].map(|retention| retention.num_days());
        let kept =
            format!("Keep the ids for {} days: the coach can send an event again for {again} days", again + longer);
        let last = format!("retries take up to {longer} more days");
        for name in ["events", "verifying"] {
            assert!(text_of(name).contains(&kept) && text_of(name).contains(&last), "{name}: {kept}.. {last}");
        }
    }

    /// Formats a number of thousands with a comma.
    fn with_comma(number: usize) -> String {
        format!("{},{:03}", number / 1000, number % 1000)
    }

    #[test]
    fn the_guide_to_verifying_shows_each_receiver_once_and_complete() {
        let page = GUIDES.iter().find(|guide| guide.name == "verifying").unwrap().with_receivers();
        for (name, file) in RECEIVERS {
            let code = without_header(file);
            assert!(file.ends_with(code) && code.contains("webhook-id"), "{name}");
            assert_eq!(page.matches(&format!("\n```{}\n{code}```\n", fence(name))).count(), 1, "{name}");
        }
        assert!(!page.contains("<<receiver"));
    }

    #[test]
    fn the_operators_guides_agree_with_the_constants() {
        let rotation = text_of("secret-rotation");
        for phrase in [
            format!("an assertion is good for {} seconds", ASSERTION_LIFE.num_seconds()),
            format!("and what the receiver answered | {} |", days_kept("where it is sent again")),
            format!("a password that waits for its mail | {} hours |", RETENTION.num_hours()),
        ] {
            assert!(rotation.contains(&phrase), "{phrase}");
        }
        let runbook = text_of("runbook");
        for section in runbook.split("\n## ").skip(1) {
            let is_complete = ["**Look**", "**For coaches**", "**Ends**"].iter().all(|part| section.contains(part));
            assert!(is_complete, "{section}");
        }
    }

    #[test]
    fn the_example_event_of_a_guide_is_signed_with_the_secret_of_the_guide() {
        let text = text_of("events");
        let secret = SigningSecret::new(std::array::from_fn(|i| i as u8 + 1));
        assert!(text.contains(&format!("`{}`", secret.reveal())));
        let request = text.split("```\nPOST ").nth(1).unwrap().split("```").next().unwrap();
        let (headers, body) = request.trim_end().split_once("\n\n").unwrap();
        let header = |name: &str| headers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap();
        let (id, at) = (EventId::parse(header("webhook-id")).unwrap(), header("webhook-timestamp").parse().unwrap());
        assert_eq!(header("webhook-signature"), signature_header(&[secret], &id, at, body.as_bytes()));
    }

    struct DescribedFact {
        name: &'static str,
        example: Value,
        /// Fields and their rules.
        rows: Vec<(&'static str, &'static str)>,
    }

    fn described_facts() -> Vec<DescribedFact> {
        const FEED: &str = include_str!("../../../infra/guides/feed.md");
        let sections = FEED.split("\n### `").skip(1).map(|section| {
            let (name, rest) = section.split_once('`').unwrap();
            let example = rest.split("```").nth(1).unwrap().strip_prefix("json").unwrap();
            let table = rest.split("\n|---|---|\n").nth(1).unwrap().split("\n\n").next().unwrap();
            let rows = table.lines().flat_map(|row| {
                let (fields, rule) = row.trim_matches('|').split_once(" | ").unwrap();
                fields.split(", ").map(move |field| (field.trim().trim_matches('`'), rule))
            });
            DescribedFact { name, example: serde_json::from_str(example).unwrap(), rows: rows.collect() }
        });
        sections.collect()
    }

    #[test]
    fn the_guide_to_the_feed_describes_every_field_of_every_fact() {
        let facts = described_facts();
        assert_eq!(facts.len(), 24);
        for DescribedFact { name, example, rows } in &facts {
            Fact::parse(name, example).unwrap_or_else(|refused| panic!("{name}: {refused:?}"));
            let read = Known::read(name, &example.to_string());
            assert_eq!(read.fields, *example, "{name}: a field that is not read");
            for field in example.as_object().unwrap().keys() {
                let mut lacking = example.clone();
                lacking.as_object_mut().unwrap().remove(field);
                assert!(Fact::parse(name, &lacking).is_err(), "{name} without {field}");
                if ["id", "occurred_at"].contains(&field.as_str()) {
                    continue;
                }
                let part = format!("{field}.");
                let own: Vec<_> = rows.iter().filter(|(row, _)| row == field || row.starts_with(&part)).collect();
                assert!(!own.is_empty(), "{name}: {field} is not described");
                let mut without = example.clone();
                without[field] = Value::Null;
                let may_be_null = own.iter().any(|(row, rule)| row == field && rule.to_lowercase().contains("null"));
                assert_eq!(Fact::parse(name, &without).is_ok(), may_be_null, "{name}: {field} as null");
            }
            for (row, _) in rows {
                let top = row.split('.').next().unwrap();
                assert!(example.get(top).is_some(), "{name} has no {row}");
            }
        }
    }

    fn fence(name: &str) -> &str {
        match name.split('.').nth(1).unwrap() {
            "py" => "python",
            "mjs" => "js",
            "rs" => "rust",
            other => other,
        }
    }

    /// The members of `data` beside `client` that a row of the guide shows, those of objects as `object.member`.
    fn members_in(row: &str) -> BTreeSet<String> {
        let mut shown = BTreeSet::new();
        let mut last = "";
        for text in row.split('`').skip(1).step_by(2) {
            match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
                Some(inner) => {
                    shown.remove(last);
                    shown.extend(inner.split(", ").map(|member| format!("{last}.{member}")));
                }
                None => {
                    shown.insert(text.to_owned());
                    last = text;
                }
            }
        }
        shown
    }

    /// The members of an object's schema that are required, besides `client`, those of objects as `object.member`.
    fn required_in(schema: &Value) -> BTreeSet<String> {
        let own = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        own.filter(|name| *name != "client")
            .flat_map(|name| match &schema["properties"][name] {
                inner if inner["required"].is_array() => {
                    required_in(inner).into_iter().map(|member| format!("{name}.{member}")).collect()
                }
                _ => vec![name.to_owned()],
            })
            .collect()
    }

    #[test]
    fn the_guide_to_events_has_the_members_of_every_event_in_the_catalog() {
        let text = text_of("events");
        let (emitted, computed) = text.split_once("## Computed events").unwrap();
        for entry in EventCatalog::all().data {
            let name = entry.event_type.as_str();
            let (place, other) =
                if entry.kind == EventKind::Emitted { (emitted, computed) } else { (computed, emitted) };
            let start = format!("| `{name}` | ");
            let rows: Vec<&str> = place.lines().filter(|line| line.starts_with(&start)).collect();
            assert_eq!((rows.len(), other.matches(&start).count()), (1, 0), "{name}");
            let members = rows[0].trim_end_matches(" |").rsplit(" | ").next().unwrap();
            // The values of a member follow its colon.
            let members = members.split(": ").next().unwrap();
            assert_eq!(members_in(members), required_in(&entry.schema), "{name}");
        }
    }

    #[test]
    fn the_guide_to_the_settings_has_every_action_and_permission() {
        let text = include_str!("../../../infra/guides/settings-api.md");
        for action in AuditAction::ALL {
            let row = format!("| `{}` | ", action.as_str());
            assert_eq!(text.matches(&row).count(), 1, "{row}");
        }
        for permission in Permission::ALL {
            let row = format!("| `{}` | {} |", permission.as_str(), permission.title());
            assert_eq!(text.matches(&row).count(), 1, "{row}");
        }
    }
}
