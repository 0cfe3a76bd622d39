//! The query of the event feed. A type that does not exist is invalid. A type that the key may not read is forbidden.

use crate::event::EventType;
use crate::fields::Invalid;
use crate::list::{EVENT_PAGE, Order};
use crate::query::{parsed, time};
use crate::time::Timestamp;

/// A page of the feed, as a caller asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedQuery {
    /// The types that the caller asks for. `None`: all that the key may read.
    pub types: Option<Vec<EventType>>,
    /// The earliest `timestamp` of an event.
    pub since: Option<Timestamp>,
    pub order: Order,
    /// `None`: the first page.
    pub cursor: Option<String>,
    pub limit: usize,
}

impl FeedQuery {
    /// The parameters of the feed.
    pub const PARAMETERS: [&str; 5] = ["types", "since", "cursor", "limit", "order"];

    /// Parses the query parameters, which `query` looks up. An empty one counts as absent.
    pub fn parse(query: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        Ok(Self {
            types: parsed(&query, "types", parse_types)?,
            since: parsed(&query, "since", time)?,
            order: parsed(&query, "order", Order::parse)?.unwrap_or(Order::Asc),
            cursor: query("cursor").filter(|text| !text.is_empty()),
            limit: EVENT_PAGE.parse(query("limit").as_deref()) as usize,
        })
    }
}

/// Parses the parameter `type` of the samples.
pub fn parse_sample_type(text: Option<&str>) -> Result<EventType, Invalid> {
    EventType::parse(text.unwrap_or_default()).map_err(|rule| Invalid::field("type", rule))
}

/// Parses the parameter `types`, or returns the rule that it breaks.
fn parse_types(text: &str) -> Result<Vec<EventType>, String> {
    let types: Result<_, _> = text.split(',').map(EventType::parse).collect();
    types.map_err(|rule| format!("{rule}, separated by commas"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<FeedQuery, Invalid> {
        FeedQuery::parse(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn parameters_are_read_and_an_empty_one_is_absent() {
        let first = FeedQuery { types: None, since: None, order: Order::Asc, cursor: None, limit: 50 };
        assert_eq!(parse(&[]), Ok(first.clone()));
        let empty = [("types", ""), ("since", ""), ("cursor", ""), ("limit", ""), ("order", "")];
        assert_eq!(parse(&empty), Ok(first));
        let read = parse(&[
            ("types", "new_client,message_received"),
            ("since", "2026-11-20T09:30:00 02:00"),
            ("cursor", "x"),
            ("limit", "1000"),
            ("order", "desc"),
        ]);
        let expected = FeedQuery {
            types: Some(vec![EventType::NewClient, EventType::MessageReceived]),
            since: Timestamp::parse("2026-11-20T07:30:00Z"),
            order: Order::Desc,
            cursor: Some("x".to_owned()),
            limit: 200,
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn a_refusal_names_the_parameter_and_the_rule() {
        for (name, bad) in [
            ("types", "client_created"),
            ("types", "new_client, message_received"),
            ("types", "new_client,"),
            ("types", "compliance_drop"),
            ("since", "yesterday"),
            ("order", "descending"),
        ] {
            let refused = parse(&[(name, bad)]).unwrap_err();
            assert_eq!(refused.field.as_deref(), Some(name), "{bad}");
        }
        assert!(parse(&[("types", "x")]).unwrap_err().message.contains("booking_cancelled, separated by commas"));
        for bad in [None, Some(""), Some("phase_eligible")] {
            assert_eq!(parse_sample_type(bad).unwrap_err().field.as_deref(), Some("type"), "{bad:?}");
        }
    }
}
