//! Operations for keys of either scope: of any key, and of those that may read events.

use domain::event::EventType;
use domain::event_feed::{EventPage, EventSamples};
use domain::list::{EVENT_PAGE, Order};
use domain::mode::Mode;
use domain::names::one_of;
use domain::own_key::OwnKey;
use domain::time::TIME_RULE;
use edge::Problem;
use serde_json::json;

use crate::document::answer::Answer;
use crate::document::operation::{Operation, invalid, or_empty};
use crate::document::operations::settings::request_log;
use crate::document::parameter::{Parameter, Place};

pub(super) fn operations(mode: Mode) -> Vec<Operation> {
    let names = EventType::ALL.map(EventType::as_str);
    let types = json!({ "type": "string", "pattern": format!("^({0})(,({0}))*$", names.join("|")) });
    let forbidden = || Problem::EventTypeNotAllowed(EventType::MessageReceived);
    vec![
        Operation::new("GET", "/v1/key", "readKey")
            .answers(Answer::of::<OwnKey>(200).example("", json!({ "mode": mode }))),
        request_log(Operation::new("GET", "/v1/requests", "listOwnRequests"), mode).refuses([Problem::NotEntitled]),
        Operation::new("GET", "/v1/events", "listEvents")
            .filter("types", types)
            .filter("since", json!({ "type": "string", "format": "date-time" }))
            .in_query("order", or_empty(json!({ "type": "string", "enum": Order::ALL, "default": Order::Asc })))
            .size("limit", "Events in the answer", EVENT_PAGE)
            .cursor()
            .refuses_unknown("type")
            .answers(Answer::of::<EventPage>(200))
            .refuses([
                invalid("types", format!("{}, separated by commas", one_of(&names))),
                invalid("since", TIME_RULE),
                invalid("order", one_of(&Order::ALL.map(Order::as_str))),
                Problem::CursorExpired,
                forbidden(),
            ]),
        Operation::new("GET", "/v1/events/samples", "sampleEvent")
            .parameter(
                Parameter::new(Place::Query, "type", json!({ "type": "string", "enum": names }))
                    .required(true)
                    .example(names[0]),
            )
            .answers(Answer::of::<EventSamples>(200))
            .refuses([invalid("type", one_of(&names)), forbidden()]),
    ]
}
