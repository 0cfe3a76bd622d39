//! Lists of the CRM: the order of a page and its cursor.
//!
//! A list is in the order of UUIDs, or in the order in which the service stored the last changes of its records. The
//! cursor of the first is a UUID, in either direction, whose record need not exist: it fits every list. The cursor of
//! the second is opaque: it holds a time, too.

use std::fmt;

use uuid::Uuid;

use crate::cursor::CursorList;
use crate::fields::Invalid;
use crate::id::parse_uuid;
use crate::list::{CRM_PAGE, Order};
use crate::query::{parsed, time};
use crate::time::Timestamp;

/// The rule of an `order` beside `updated_since`.
pub const ORDER_BY_UPDATE_RULE: &str = "does not go with updated_since, which lists the oldest update first";

/// The page of a list that a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest<W> {
    pub walk: W,
    /// The most records of the page.
    pub limit: u32,
}

/// A walk through a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    ById(ById),
    ByUpdate(ByUpdate),
}

/// A walk in the order of UUIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ById {
    pub order: Order,
    /// The page begins after this record.
    pub after: Option<Uuid>,
}

/// A walk in the order of updates, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByUpdate {
    /// The earliest update.
    pub since: Timestamp,
    /// The page begins after this update.
    pub after: Option<Update>,
}

/// The last update of a record. Displays as the time and the UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Update {
    /// The time at which the service stored the update.
    pub at: Timestamp,
    pub id: Uuid,
}

/// The position of a record in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    Id(Uuid),
    Update(Update),
}

impl PageRequest<ById> {
    /// Parses the parameters `order`, `cursor` and `limit`, which `query` looks up.
    pub fn parse(query: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let order = parsed(&query, "order", Order::parse)?.unwrap_or(Order::Asc);
        let after = parsed(&query, "cursor", parse_uuid)?;
        Ok(Self { walk: ById { order, after }, limit: CRM_PAGE.parse(query("limit").as_deref()) })
    }
}

impl PageRequest<Walk> {
    /// Parses the parameters of a list without `updated_since`, or else `updated_since`, `cursor` and `limit`.
    pub fn parse(list: &CursorList<'_>, query: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let Some(since) = parsed(&query, "updated_since", time)? else {
            let PageRequest { walk, limit } = PageRequest::<ById>::parse(query)?;
            return Ok(Self { walk: Walk::ById(walk), limit });
        };
        parsed(&query, "order", |_| Err::<Order, _>(ORDER_BY_UPDATE_RULE))?;
        let after = list.parse(query("cursor").as_deref(), Update::parse)?;
        let walk = Walk::ByUpdate(ByUpdate { since, after });
        Ok(Self { walk, limit: CRM_PAGE.parse(query("limit").as_deref()) })
    }
}

impl Walk {
    /// Sorts records and leaves out those before the page. Each record has its position by id and by update.
    pub fn rest<T>(&self, records: impl IntoIterator<Item = (Update, T)>) -> Vec<(Position, T)> {
        let position = |update: Update| match self {
            Self::ById(_) => Position::Id(update.id),
            Self::ByUpdate(_) => Position::Update(update),
        };
        let records = records.into_iter().map(|(update, record)| (position(update), record));
        let mut rest: Vec<_> = records.filter(|(position, _)| self.is_ahead(position)).collect();
        rest.sort_by_key(|(position, _)| *position);
        if matches!(self, Self::ById(ById { order: Order::Desc, .. })) {
            rest.reverse();
        }
        rest
    }

    fn is_ahead(&self, position: &Position) -> bool {
        match (self, position) {
            (Self::ById(ById { order: Order::Asc, after }), Position::Id(id)) => after.is_none_or(|after| *id > after),
            (Self::ById(ById { order: Order::Desc, after }), Position::Id(id)) => after.is_none_or(|after| *id < after),
            (Self::ByUpdate(ByUpdate { since, after }), Position::Update(update)) => {
                update.at >= *since && after.is_none_or(|after| *update > after)
            }
            (Self::ById(_), Position::Update(_)) | (Self::ByUpdate(_), Position::Id(_)) => false,
        }
    }
}

impl Update {
    /// Parses the displayed form.
    pub fn parse(text: &str) -> Option<Self> {
        let (at, id) = text.split_once('#')?;
        let update = Self { at: Timestamp::parse(at)?, id: parse_uuid(id).ok()? };
        (update.to_string() == text).then_some(update)
    }
}

impl fmt::Display for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.at, self.id)
    }
}

impl Position {
    /// Returns the cursor of a page of the list that ends here.
    pub fn cursor(self, list: &CursorList<'_>) -> String {
        match self {
            Self::Id(id) => id.to_string(),
            Self::Update(update) => list.cursor(&update.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::CoachId;

    const ID: &str = "0197a6a0-5c3b-7000-8000-2f1d3c4b5a69";
    const SINCE: &str = "2026-11-20T09:30:00Z";

    /// Calls a function with a list.
    fn of_list<T>(call: impl FnOnce(&CursorList<'_>) -> T) -> T {
        call(&CursorList { name: "contacts", coach: &CoachId::parse("ada").unwrap() })
    }

    fn parse(given: &[(&str, &str)]) -> Result<PageRequest<Walk>, String> {
        let look_up = |name: &str| given.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned());
        of_list(|list| PageRequest::<Walk>::parse(list, look_up)).map_err(|invalid| invalid.field.unwrap())
    }

    fn opaque() -> String {
        let at = Timestamp::parse(SINCE).unwrap();
        of_list(|list| Position::Update(Update { at, id: parse_uuid(ID).unwrap() }).cursor(list))
    }

    #[test]
    fn empty_parameters_ask_for_the_first_page_by_id() {
        let first = Walk::ById(ById { order: Order::Asc, after: None });
        let all = ["order", "updated_since", "cursor", "limit"].map(|name| (name, ""));
        assert_eq!(parse(&all), Ok(PageRequest { walk: first, limit: CRM_PAGE.default }));
        assert_eq!(parse(&all), parse(&[]));
        assert_eq!(parse(&[("order", "asc")]), parse(&[]));
    }

    #[test]
    fn a_parameter_that_breaks_its_rule_is_named() {
        let opaque = opaque();
        for (given, field) in [
            (vec![("order", "ASC")], "order"),
            (vec![("order", " ")], "order"),
            (vec![("order", "asc"), ("updated_since", SINCE)], "order"),
            (vec![("order", "up"), ("updated_since", SINCE)], "order"),
            (vec![("updated_since", "2026-11-20")], "updated_since"),
            (vec![("updated_since", "now"), ("order", "asc")], "updated_since"),
            (vec![("cursor", "next")], "cursor"),
            (vec![("cursor", &opaque)], "cursor"),
            (vec![("cursor", ID), ("updated_since", SINCE)], "cursor"),
            (vec![("cursor", &opaque[1..]), ("updated_since", SINCE)], "cursor"),
            (vec![("cursor", "AAAA"), ("updated_since", SINCE)], "cursor"),
        ] {
            assert_eq!(parse(&given), Err(field.to_owned()), "{given:?}");
        }
    }

    #[test]
    fn a_blank_in_updated_since_is_a_plus_and_order_may_be_empty() {
        let [plus, blank] = ["2026-11-20T11:30:00+02:00", "2026-11-20T11:30:00 02:00"]
            .map(|since| parse(&[("updated_since", since), ("order", "")]));
        assert_eq!(plus, parse(&[("updated_since", SINCE)]));
        assert_eq!(blank, plus);
    }

    proptest! {
        #[test]
        fn a_displayed_update_reads_back_in_one_form(ms in 0i64..4_000_000_000_000, id: u128, other in "\\PC{0,90}") {
            let update = Update { at: Timestamp::from_ms(ms), id: Uuid::from_u128(id) };
            prop_assert_eq!(Update::parse(&update.to_string()), Some(update));
            if let Some(read) = Update::parse(&other) {
                prop_assert_eq!(read.to_string(), other);
            }
        }

        #[test]
        fn displayed_updates_sort_as_updates_do(a in 0i64..9, b in 0i64..9, one: u128, other: u128) {
            let update = |ms, id| Update { at: Timestamp::from_ms(ms), id: Uuid::from_u128(id) };
            let (a, b) = (update(a, one), update(b, other));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }

        #[test]
        fn pages_of_any_size_show_each_record_once_in_order(
            records in prop::collection::btree_map(0u128..40, 0i64..9, 0..20), limit in 1usize..7, way in 0..3,
        ) {
            let all: Vec<Update> = records
                .into_iter()
                .map(|(id, ms)| Update { at: Timestamp::from_ms(ms), id: Uuid::from_u128(id) })
                .collect();
            let since = Timestamp::from_ms(3);
            let mut expected = all.clone();
            match way {
                0 => {}
                1 => expected.reverse(),
                _ => {
                    expected.retain(|update| update.at >= since);
                    expected.sort();
                }
            }
            let (mut walked, mut last): (Vec<Update>, Option<Position>) = (Vec::new(), None);
            loop {
                let cursor = last.map_or_else(String::new, |last| of_list(|list| last.cursor(list)));
                let mut given = vec![("cursor", cursor.as_str())];
                let since = since.to_string();
                given.extend([("order", "desc")].into_iter().filter(|_| way == 1));
                given.extend([("updated_since", since.as_str())].into_iter().filter(|_| way == 2));
                let rest = parse(&given).unwrap().walk.rest(all.iter().map(|update| (*update, *update)));
                let Some((position, _)) = rest.iter().take(limit).next_back() else { break };
                last = Some(*position);
                walked.extend(rest.iter().take(limit).map(|(_, update)| *update));
            }
            prop_assert_eq!(walked, expected);
        }
    }
}
