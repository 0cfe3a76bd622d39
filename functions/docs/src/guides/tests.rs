//! Tests of the guides: links, and tables that repeat names of the code.

use std::collections::BTreeSet;

use compare::assert_same;
use domain::audit::AuditAction;
use domain::event::{EventCatalog, EventKind};
use domain::fact::{Fact, known_fields};
use domain::id::EventId;
use domain::mode::Mode;
use domain::rate_limit::{Limit, WINDOW_S};
use domain::signature::{SigningSecret, signature_header};
use edge::Code;
use edge::routes::{Route, VERSION};
use serde_json::{Value, json};

use super::*;
use crate::markdown::to_html;
use crate::site::{EXAMPLE_BASE, EXAMPLE_SANDBOX, SANDBOX_GUIDE};

/// Folder of the operators' guides.
const OPERATORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/guides");

fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap())
}

fn heading_ids(text: &str) -> Vec<String> {
    let html = to_html(text);
    html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn the_changes_begin_with_the_present_version() {
    let text = text_of("changes");
    let version = text.split("\n## Version ").nth(1).unwrap();
    assert!(version.starts_with(&format!("`{VERSION}`\n")), "functions/docs/pages/changes.md lacks {VERSION}");
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
            let has_section = || heading_ids(&std::fs::read_to_string(&target).unwrap()).contains(&section.to_owned());
            assert!(section.is_empty() || has_section(), "{}: {link}", page.display());
        }
    }
}

/// A sandbox, which shows all guides.
fn sandbox() -> Deployment {
    Deployment::new(Mode::Test, EXAMPLE_SANDBOX, None)
}

fn text_of(name: &str) -> String {
    let integrators = GUIDES.iter().find(|guide| guide.name == name).map(|guide| guide.text.to_owned());
    integrators.unwrap_or_else(|| std::fs::read_to_string(format!("{OPERATORS}/{name}.md")).unwrap())
}

#[test]
fn the_guides_to_the_clients_and_to_the_crm_have_the_permissions_with_their_routes() {
    for (guide, row) in [
        ("getting-started", "| `clients.write` | Add clients, and switch them on and off | `POST /v1/clients`, "),
        ("crm", "| `bookings.write` | Book, move and cancel appointments | `POST /v1/crm/bookings`, "),
    ] {
        let page = markdown(&text_of(guide), &sandbox());
        assert!(page.contains(row) && !page.contains("<<"), "{guide}: {page}");
    }
}

/// Returns true if a pattern of the guide to capacity stands for the route. `*` is any part of a path.
fn stands_for(pattern: &str, route: &Route) -> bool {
    let Some((method, path)) = pattern.split_once(' ') else { return false };
    let (parts, wanted): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), route.path.split('/').collect());
    let fits = |(part, wanted): (&&str, &&str)| *part == "*" || part == wanted;
    method == route.method && parts.len() == wanted.len() && parts.iter().zip(&wanted).all(fits)
}

#[test]
fn the_guide_to_capacity_has_the_costs_of_every_route_of_integrators() {
    let text = text_of("capacity");
    let rows = text.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    let patterns: Vec<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let has_row = |route: &&Route| patterns.iter().any(|pattern| stands_for(pattern, route));
    let left: Vec<String> = ROUTES
        .iter()
        .filter(|route| route.path.starts_with("/v1/") && !has_row(route))
        .map(ToString::to_string)
        .collect();
    assert!(left.is_empty(), "add a row to the table of routes in infra/guides/capacity.md for {left:?}");
}

#[test]
fn the_guide_to_errors_has_every_member() {
    let text = text_of("errors");
    let table = text.split("| Member | Meaning |\n|---|---|\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let shown: BTreeSet<&str> = table.lines().map(|row| row.split('`').nth(1).unwrap()).collect();
    let document = crate::document::document(Mode::Test);
    let schema = document["components"]["schemas"]["Error"]["properties"].as_object().unwrap();
    assert_same("the table of members in functions/docs/pages/errors.md", shown, schema.keys());
}

#[test]
fn a_table_has_a_row_for_every_name_of_the_code() {
    let codes = Code::ALL.iter().map(|code| ("errors", format!("| {} | `{code}` | ", code.status().as_u16())));
    let actions = AuditAction::ALL.iter().map(|action| ("settings-api", format!("| `{}` | ", action.as_str())));
    let permissions = Permission::ALL.map(|one| ("settings-api", format!("| `{}` | {} |", one.as_str(), one.title())));
    for (guide, row) in codes.chain(actions).chain(permissions) {
        assert_eq!(text_of(guide).matches(&row).count(), 1, "write one row `{row}..` in {guide}.md");
    }
}

#[test]
fn the_guide_to_limits_shows_the_policy_of_every_key() {
    let policy = format!("\"{}\";q={};w={WINDOW_S}", Limit::Requests.policy(), Limit::Requests.per_minute());
    assert!(text_of("limits").contains(&policy), "functions/docs/pages/limits.md: show `{policy}`");
}

#[test]
fn the_guide_to_verifying_shows_each_receiver_once_and_complete() {
    let page = markdown(&text_of("verifying"), &sandbox());
    for (name, file) in RECEIVERS {
        let code = without_header(file);
        assert!(file.ends_with(code) && code.contains("webhook-id"), "{name}");
        assert_eq!(page.matches(&format!("\n```{}\n{code}```\n", fence(name))).count(), 1, "{name}");
    }
    assert!(!page.contains("<<receiver"));
}

#[test]
fn a_section_of_the_runbook_is_complete() {
    let runbook = text_of("runbook");
    // Reports of people have no alarm that ends.
    let of_alarms = runbook.split("\n## ").skip(1).filter(|section| !section.starts_with("Without an alarm\n"));
    for section in of_alarms {
        let is_complete = ["**Look**", "**For coaches**", "**Ends**"].iter().all(|part| section.contains(part));
        assert!(is_complete, "{section}");
    }
}

#[test]
fn the_example_event_of_a_guide_is_signed_with_the_secret_of_the_guide() {
    let text = text_of("events");
    let secret = SigningSecret::new(std::array::from_fn(|i| i as u8 + 1));
    assert!(text.contains(&format!("`{}`", secret.reveal())));
    let request = text.split("\nPOST ").nth(1).unwrap().split("```").next().unwrap();
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
    const FEED: &str = include_str!("../../../../infra/guides/feed.md");
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
        assert_eq!(known_fields(name, example), *example, "{name}: a field that is not read");
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
            assert_rows_are_the_fields(
                name,
                field,
                &example[field],
                own.iter().filter_map(|(row, _)| row.strip_prefix(&part)),
            );
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

/// Asserts that the rows of an object, or of the objects in a list, are fields of its struct. Each member shown has a
/// row.
fn assert_rows_are_the_fields<'a>(fact: &str, field: &str, shown: &Value, rows: impl Iterator<Item = &'a str>) {
    let rows: BTreeSet<&str> = rows.collect();
    let mut filled = json!({ field: shown });
    let objects = match &mut filled[field] {
        Value::Array(items) => items.iter_mut().collect(),
        one => vec![one],
    };
    for object in objects.into_iter().filter_map(Value::as_object_mut).filter(|_| !rows.is_empty()) {
        assert!(object.keys().all(|member| rows.contains(member.as_str())), "{fact}: {field} has {object:?}");
        for row in &rows {
            object.entry(*row).or_insert(Value::Null);
        }
    }
    assert_eq!(known_fields(fact, &filled), filled, "{fact}: a row of {field} is no field");
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
    own.filter(|name| !["client", "contact"].contains(name))
        .flat_map(|name| match &schema["properties"][name] {
            inner if inner["required"].is_array() => {
                required_in(inner).into_iter().map(|member| format!("{name}.{member}")).collect()
            }
            _ => vec![name.to_owned()],
        })
        .collect()
}

#[test]
fn the_guide_to_the_sandbox_has_the_members_of_every_fact_that_it_takes() {
    let text = text_of("sandbox");
    for DescribedFact { name, example, .. } in described_facts() {
        let start = format!("| `{name}` | ");
        let rows: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(&start)).collect();
        if ["workspace.saved", "team.saved"].contains(&name) {
            assert!(rows.is_empty(), "{name}");
            continue;
        }
        let [row] = rows[..] else { panic!("write one row `{start}..` in functions/docs/pages/sandbox.md") };
        let shown = row.split(" | ").next().unwrap().split('`').skip(1).step_by(2);
        let members = example.as_object().unwrap().keys().map(String::as_str);
        let wanted = members.filter(|member| !["id", "occurred_at", "coach_id"].contains(member));
        assert_same(&format!("the row of `{name}` in functions/docs/pages/sandbox.md"), shown, wanted);
    }
}

#[test]
fn a_page_names_the_sandbox_only_where_there_is_one() {
    let [live, beside] = [None, Some(EXAMPLE_SANDBOX)].map(|other| Deployment::new(Mode::Live, EXAMPLE_BASE, other));
    for (deployment, is_shown) in [(live, false), (beside, true), (sandbox(), true)] {
        let paths: Vec<String> = pages(&deployment).map(|page| page.path).collect();
        assert_eq!(paths.iter().any(|path| path == SANDBOX_GUIDE), is_shown);
        let errors = markdown(&text_of("errors"), &deployment);
        assert_eq!([SANDBOX_GUIDE, "test_quota"].map(|text| errors.contains(text)), [is_shown; 2]);
    }
}

#[test]
fn the_guide_to_events_has_the_members_of_every_event_in_the_catalog() {
    let text = text_of("events");
    let (emitted, computed) = text.split_once("## Computed events").unwrap();
    for entry in EventCatalog::all().data {
        let name = entry.event_type.as_str();
        let (place, other) = if entry.kind == EventKind::Emitted { (emitted, computed) } else { (computed, emitted) };
        let start = format!("| `{name}` | ");
        let rows: Vec<&str> = place.lines().filter(|line| line.starts_with(&start)).collect();
        assert_eq!((rows.len(), other.matches(&start).count()), (1, 0), "{name}");
        let members = rows[0].trim_end_matches(" |").rsplit(" | ").next().unwrap();
        // The values of a member follow its colon.
        let members = members.split(": ").next().unwrap();
        let rule = format!("the members in the row of `{name}` in functions/docs/pages/events.md");
        // A member that several events have is described once, in a row of its own.
        let described = members_in(members).into_iter().flat_map(|member| {
            let row = place.lines().find_map(|line| line.strip_prefix(&format!("| `{member}` | `{{")));
            let inner = row.and_then(|row| row.split_once('}')).map(|(inner, _)| format!("`{member}` `{{{inner}}}`"));
            inner.map_or_else(|| BTreeSet::from([member]), |inner| members_in(&inner))
        });
        assert_same(&rule, described.collect::<BTreeSet<_>>(), required_in(&entry.schema));
    }
}
