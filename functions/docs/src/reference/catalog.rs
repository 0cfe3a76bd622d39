//! The event catalog: each event with its members, and an example in both payload modes.

use domain::event::{ComputedType, EventName, EventType};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::context::Context;
use super::html::member_rows;
use super::markdown::member_table;
use super::rows::{self, Row, Sender, plain};
use super::table;
use crate::document::parameter::Parameter;
use crate::document::schema::Schema;
use crate::document::webhooks::{self, MODES, Webhook};
use crate::markdown::{block, inline};
use crate::page::{Form, Place};
use crate::parts::{self, Panel, Sync, icon};
use crate::site::EVENTS;

const ABOUT: &str = "Every event with its members and an example in both payload modes. [Events](/docs/guides/events) says \
                     when they are sent, and how to answer. [Verify webhooks](/docs/guides/verifying) has complete receivers.";
/// The section about what all events share.
const SHARED: (&str, &str) = ("every-event-has", "Every event has");
/// The member that only test events have.
const TEST: &str = "test";

/// A group of events on the page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Area {
    Clients,
    CheckIns,
    Compliance,
    Contacts,
    Opportunities,
    Bookings,
}

impl Area {
    const ALL: [Self; 6] =
        [Self::Clients, Self::CheckIns, Self::Compliance, Self::Contacts, Self::Opportunities, Self::Bookings];

    fn of(event: EventName) -> Self {
        match event {
            EventName::Emitted(EventType::NewClient | EventType::PhaseAdvanced)
            | EventName::Computed(ComputedType::PhaseEligible) => Self::Clients,
            EventName::Emitted(
                EventType::CheckInSubmitted
                | EventType::LowCheckInScore
                | EventType::SystemGradeDrop
                | EventType::MessageReceived,
            ) => Self::CheckIns,
            EventName::Computed(
                ComputedType::ComplianceDrop
                | ComputedType::ComplianceMilestone
                | ComputedType::CheckInInactivity
                | ComputedType::DailyLogInactivity,
            ) => Self::Compliance,
            EventName::Emitted(EventType::ContactCreated | EventType::ContactUpdated | EventType::ContactMerged) => {
                Self::Contacts
            }
            EventName::Emitted(
                EventType::OpportunityCreated | EventType::OpportunityUpdated | EventType::OpportunityStageChanged,
            ) => Self::Opportunities,
            EventName::Emitted(
                EventType::BookingCreated | EventType::BookingRescheduled | EventType::BookingCancelled,
            ) => Self::Bookings,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Clients => "Clients and phases",
            Self::CheckIns => "Check-ins and messages",
            Self::Compliance => "Compliance and inactivity",
            Self::Contacts => "CRM: contacts",
            Self::Opportunities => "CRM: opportunities",
            Self::Bookings => "CRM: bookings",
        }
    }
}

/// Renders the page as Markdown.
pub(super) fn markdown(context: Context<'_>) -> String {
    let mut page = format!("# Event catalog\n\n{ABOUT}\n\n## {}\n", SHARED.1);
    page += &member_table(&shared_rows(context), Sender::Service);
    let headers = webhooks::headers("new_client", context.document.mode);
    let headers = headers.iter().map(|header| {
        let about = header.about.clone().unwrap_or_default();
        [format!("`{}`", header.name), format!("`{}`", example(header)), about]
    });
    page += &format!("\n### Headers of a request\n{}", table::render(["Header", "Example", "Meaning"], headers));
    let answers = webhooks::answers().map(|(status, about)| [format!("`{status}`"), about.to_owned()]);
    page += &format!("\n### Your answer\n{}", table::render(["Status", "Meaning"], answers));
    for webhook in in_order(context) {
        let rows = member_table(&own_rows(webhook, context), Sender::Service);
        page += &format!("\n## {}\n\n{}\n{rows}", webhook.name(), webhook.about());
        for (mode, example) in MODES.iter().zip(examples(webhook)) {
            page += &format!("\n{mode}:\n\n```json\n{example:#}\n```\n");
        }
    }
    page
}

/// Renders the page as HTML.
pub(super) fn form(context: Context<'_>) -> Form {
    let events = in_order(context);
    let emitted = events.iter().filter(|webhook| webhook.is_emitted()).count();
    let chip = |name: &str, text: String| html! { li { span .chip { (icon(name)) span { (inline(&text)) } } } };
    let sections = html! {
        section .top-of-sheet aria-labelledby="event-catalog" {
            p .crumb { "Receive events" a href=(format!("{EVENTS}.md")) { "This page as Markdown" } }
            h1 #event-catalog { "Event catalog" }
            div .lead { (block(ABOUT)) }
            ul .chips {
                (chip("hook", format!("**{emitted}** to subscribe to")))
                (chip("bolt", format!("**{}** that automations send", events.len() - emitted)))
            }
            (areas(&events))
        }
        (shared(context))
        @for webhook in &events { (section(webhook, context)) }
    };
    let place =
        |webhook: &&Webhook| Place { id: webhook.name().to_owned(), method: None, name: webhook.name().to_owned() };
    let places = events.iter().map(place).collect();
    Form::Sheet { sections, places }
}

/// The webhooks by area.
fn in_order<'d>(context: Context<'d>) -> Vec<&'d Webhook> {
    let mut events: Vec<&Webhook> = context.document.webhooks.iter().collect();
    events.sort_by_key(|webhook| Area::of(webhook.event) as usize);
    events
}

/// All events in groups, each with a line on when it is sent.
fn areas(events: &[&Webhook]) -> Markup {
    html! {
        div .areas {
            @for area in Area::ALL {
                div .area {
                    h2 { (area.title()) }
                    ul {
                        @for webhook in events.iter().filter(|webhook| Area::of(webhook.event) == area) {
                            li {
                                a href=(format!("#{}", webhook.name())) { code { (webhook.name()) } }
                                span .way.soft {
                                    @if webhook.is_emitted() { (icon("hook")) "subscribe" } @else { (icon("bolt")) "automation" }
                                }
                                p { (inline(first_sentence(webhook.event.description()))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

/// The section about all events: the envelope, the headers, and the answers of a receiver.
fn shared(context: Context<'_>) -> Markup {
    let (id, title) = SHARED;
    let headers = webhooks::headers("new_client", context.document.mode);
    let header_row = |header: &Parameter| Row {
        name: header.name.clone(),
        kind: rows::kind(context.schemas, &Schema::read(&json!({ "type": header.schema["type"] }))),
        about: header.about.clone().unwrap_or_default(),
        members: Vec::new(),
        is_list: false,
    };
    let rows: Vec<Row> = headers.iter().map(header_row).collect();
    let lines = headers.iter().map(|header| format!("{}: {}", header.name, example(header)));
    let body = "{\n  \"type\": \"new_client\",\n  \"timestamp\": \"2026-11-20T09:30:00.000Z\",\n  \"data\": { … }\n}";
    let head = ["POST /coaching HTTP/1.1", "content-type: application/json"].map(str::to_owned);
    let request = format!("{}\n\n{body}", head.into_iter().chain(lines).collect::<Vec<_>>().join("\n"));
    html! {
        section .op aria-labelledby=(id) {
            div .text {
                h2 id=(id) { (title) (parts::anchor(id)) }
                (member_rows(id, &shared_rows(context)))
                h3 #headers-of-a-request { "Headers of a request" (parts::anchor("headers-of-a-request")) }
                (member_rows("header", &rows))
                h3 #your-answer { "Your answer" (parts::anchor("your-answer")) }
                dl .params {
                    @for (status, about) in webhooks::answers() {
                        div .param { dt { code { (status) } } dd .about { (inline(about)) } }
                    }
                }
            }
            div .samples { h3 { "Request" } (parts::figure(html! { "To your receiver" }, parts::code("http", &request))) }
        }
    }
}

fn section(webhook: &Webhook, context: Context<'_>) -> Markup {
    let id = webhook.name();
    let rows = own_rows(webhook, context);
    let panel = |(mode, example): (&str, &Value)| Panel {
        id: format!("{id}-{}", crate::markdown::slug(mode)),
        title: html! { (mode) },
        content: parts::code("json", &format!("{example:#}")),
    };
    let panels: Vec<Panel> = MODES.into_iter().zip(examples(webhook)).map(panel).collect();
    html! {
        section .op aria-labelledby=(id) {
            div .text {
                h2 id=(id) { code { (id) } (parts::anchor(id)) }
                ul .chips {
                    li { span .chip {
                        @if webhook.is_emitted() { (icon("hook")) "Subscribe an endpoint" } @else { (icon("bolt")) "Sent by an automation" }
                    } }
                }
                p { (inline(&webhook.about())) }
                @if !rows.is_empty() { h3 { code { "data" } } (member_rows(id, &rows)) }
            }
            div .samples { h3 { "Body" } (parts::tabs("Payload mode", Some(Sync::Mode), &panels)) }
        }
    }
}

fn examples(webhook: &Webhook) -> [&Value; 2] {
    [&webhook.examples.identifiers, &webhook.examples.contact_details]
}

fn example(header: &Parameter) -> String {
    header.example.as_ref().map(plain).unwrap_or_default()
}

/// The members of an event besides those that all events have.
fn own_rows(webhook: &Webhook, context: Context<'_>) -> Vec<Row> {
    data(rows::of(context.schemas, &Schema::read(&webhook.schema), Sender::Service)).0
}

/// The members that all events have.
fn shared_rows(context: Context<'_>) -> Vec<Row> {
    let first = Schema::read(&context.document.webhooks[0].schema);
    let rows = rows::of(context.schemas, &first, Sender::Service);
    let (_, test) = data(rows::of(context.schemas, &first, Sender::Service));
    let shared = rows.into_iter().map(|row| match row.name.as_str() {
        "type" => Row { kind: vec!["string".to_owned()], ..row },
        "data" => Row { members: Vec::new(), ..row },
        _ => row,
    });
    shared.chain(test.map(|row| Row { name: format!("data.{TEST}"), ..row })).collect()
}

/// Splits the members of `data` into those of an event, and the mark of a test.
fn data(rows: Vec<Row>) -> (Vec<Row>, Option<Row>) {
    let members = rows.into_iter().find(|row| row.name == "data").map(|row| row.members).unwrap_or_default();
    let (mut test, own): (Vec<Row>, Vec<Row>) = members.into_iter().partition(|row| row.name == TEST);
    (own, test.pop())
}
