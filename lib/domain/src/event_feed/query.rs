//! The query of the event feed. A type that does not exist is invalid. A type that the key may not read is forbidden.

use crate::event::EventType;
use crate::fields::Invalid;
use crate::list::{EVENT_PAGE, Order};
use crate::query::{parsed, time};
use crate::time::Timestamp;

/// A page of the feed, as a caller asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedQuery {
    /// The earliest `timestamp` of an event.
    pub since: Option<Timestamp>,
    pub order: Order,
    /// `None`: the first page.
    pub cursor: Option<String>,
    pub limit: usize,
}

impl FeedQuery {
    /// Parses the query parameters, which `query` looks up, but for `types`. An empty one counts as absent.
    pub fn parse(query: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        Ok(Self {
            since: parsed(&query, "since", time)?,
            order: parsed(&query, "order", Order::parse)?.unwrap_or(Order::Asc),
            cursor: query("cursor").filter(|text| !text.is_empty()),
            limit: EVENT_PAGE.parse(query("limit").as_deref()) as usize,
        })
    }
}

/// Parses the parameter `types`, which permissions depend on. `None`: all that the key may read.
pub fn parse_types(query: impl Fn(&str) -> Option<String>) -> Result<Option<Vec<EventType>>, Invalid> {
    parsed(query, "types", types)
}

/// Parses the parameter `type` of the samples.
pub fn parse_sample_type(text: Option<&str>) -> Result<EventType, Invalid> {
    EventType::parse(text.unwrap_or_default()).map_err(|rule| Invalid::field("type", rule))
}

/// Parses types, each once, or returns the rule that they break.
fn types(text: &str) -> Result<Vec<EventType>, String> {
    let named: Result<Vec<EventType>, _> = text.split(',').map(EventType::parse).collect();
    let named = named.map_err(|rule| format!("{rule}, separated by commas"))?;
    Ok(EventType::ALL.into_iter().filter(|known| named.contains(known)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_up(pairs: &[(&str, &str)], name: &str) -> Option<String> {
        pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    fn parse(pairs: &[(&str, &str)]) -> Result<FeedQuery, Invalid> {
        FeedQuery::parse(|name| look_up(pairs, name))
    }

    fn types_of(text: &str) -> Result<Option<Vec<EventType>>, Invalid> {
        parse_types(|name| look_up(&[("types", text)], name))
    }

    #[test]
    fn parameters_are_read_and_an_empty_one_is_absent() {
        let first = FeedQuery { since: None, order: Order::Asc, cursor: None, limit: 50 };
        assert_eq!(parse(&[]), Ok(first.clone()));
        assert_eq!(types_of(""), Ok(None));
        let read = types_of("message_received,new_client,message_received");
        assert_eq!(read, Ok(Some(vec![EventType::NewClient, EventType::MessageReceived])));
        let empty = [("since", ""), ("cursor", ""), ("limit", ""), ("order", "")];
        assert_eq!(parse(&empty), Ok(first));
        let read =
            parse(&[("since", "2026-11-20T09:30:00 02:00"), ("cursor", "x"), ("limit", "1000"), ("order", "desc")]);
        let expected = FeedQuery {
            since: Timestamp::parse("2026-11-20T07:30:00Z"),
            order: Order::Desc,
            cursor: Some("x".to_owned()),
            limit: 200,
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn a_refusal_names_the_parameter_and_the_rule() {
        for bad in ["client_created", "new_client, message_received", "new_client,", "compliance_drop"] {
            assert_eq!(types_of(bad).unwrap_err().field.as_deref(), Some("types"), "{bad}");
        }
        for (name, bad) in [("since", "yesterday"), ("order", "descending")] {
            let refused = parse(&[(name, bad)]).unwrap_err();
            assert_eq!(refused.field.as_deref(), Some(name), "{bad}");
        }
        assert!(types_of("x").unwrap_err().message.contains("booking_cancelled, separated by commas"));
        for bad in [None, Some(""), Some("phase_eligible")] {
            assert_eq!(parse_sample_type(bad).unwrap_err().field.as_deref(), Some("type"), "{bad:?}");
        }
    }
}
