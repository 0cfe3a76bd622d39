//! "The newest value wins", field by field, in any order of arrival.
//!
//! The application and the API both write a record: a fact has the whole record, a request sets some of its fields.
//! Each field has a [`Register`] with the time of its last write. A fact is offered to every register of the record.
//! A register takes it unless its own value is newer. So a fact that is older than the last one changes nothing, and
//! a fact that is older than a request changes all fields but those that the request set. A request is always taken:
//! it counts after every stored write of the record, even if the application's clock is ahead or a later request
//! committed first.
//!
//! A register does not hold the value. Values are plain fields of their record and plain attributes of its item,
//! because indexes project them, conditions check them and erasures remove them by name. The registers of a record
//! are stored beside its values, in this one form.

use serde::{Deserialize, Serialize};

use crate::fact_time::FactTime;
use crate::time::Timestamp;

/// The last write of a field. The default: nobody has set the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Register {
    #[serde(rename = "at", default, skip_serializing_if = "Option::is_none")]
    set_at: Option<FactTime>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    by_api: bool,
}

impl Register {
    /// The register of a field that the API set.
    pub fn by_api(at: Timestamp) -> Self {
        Self { set_at: Some(at.into()), by_api: true }
    }

    /// The register of a field that a fact of the application set.
    pub fn by_application(at: FactTime) -> Self {
        Self { set_at: Some(at), by_api: false }
    }

    /// Returns the time of the last write.
    pub fn set_at(self) -> Option<FactTime> {
        self.set_at
    }

    pub fn is_set_by_application(self) -> bool {
        self.set_at.is_some() && !self.by_api
    }

    /// Takes the value of a fact, unless the present one is newer: of equal times, the last to arrive counts. Returns
    /// true if it was taken.
    pub fn offer<T>(&mut self, value: &mut T, offered: T, at: FactTime) -> bool {
        let is_taken = self.set_at <= Some(at);
        if is_taken {
            (*value, *self) = (offered, Self::by_application(at));
        }
        is_taken
    }

    /// Sets the value through the API, after every stored write. Returns true if the application had set the value:
    /// confirming it is an update, because an older fact no longer changes it.
    pub fn set<T>(&mut self, value: &mut T, wanted: T, at: Timestamp) -> bool {
        let confirms = self.is_set_by_application();
        (*value, *self) = (wanted, Self::by_api(at));
        confirms
    }
}

/// Defines the registers of a record: one for each field, or group of fields, that is merged by time.
macro_rules! registers {
    ($(#[$doc:meta])* $vis:vis $name:ident { $($field:ident),+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ::serde::Serialize, ::serde::Deserialize)]
        $vis struct $name {
            $($vis $field: $crate::register::Register,)+
        }

        impl $name {
            /// The registers after a write of the whole record.
            $vis fn whole(write: $crate::register::Register) -> Self {
                Self { $($field: write,)+ }
            }

            /// Returns the time of the last write, and the Unix epoch if there is none.
            $vis fn last_write(&self) -> $crate::time::Timestamp {
                [$(self.$field.set_at()),+].into_iter().flatten().max().unwrap_or_default().timestamp()
            }
        }
    };
}
pub(crate) use registers;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    registers! { One { field } }

    /// The writes of one field, in their order of arrival.
    #[derive(Debug, Clone)]
    enum Write {
        /// The time and value of a fact.
        Fact(i64, u32),
        /// The time of a request on the clock of the API, and its value.
        Request(i64, u32),
    }

    fn fact() -> impl Strategy<Value = (i64, u32)> {
        (0..6i64, any::<u32>())
    }

    fn at(ms: i64) -> FactTime {
        FactTime::from_ms(ms)
    }

    fn apply(register: &mut Register, value: &mut u32, write: &Write) {
        match write {
            Write::Fact(ms, offered) => drop(register.offer(value, *offered, at(*ms))),
            Write::Request(now, wanted) => {
                let at = Timestamp::from_ms(*now).after(One::whole(*register).last_write());
                register.set(value, *wanted, at);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
        /// Each fact arrives once or more often, in any order. Times may be equal.
        #[test]
        fn the_newest_fact_counts_in_any_order_and_of_equal_ones_the_last(
            (facts, arrivals) in proptest::collection::vec(fact(), 1..8).prop_flat_map(|facts| {
                let again = proptest::sample::subsequence((0..facts.len()).collect::<Vec<_>>(), 0..=facts.len());
                let order = again.prop_flat_map({
                    let count = facts.len();
                    move |again| Just((0..count).chain(again).collect::<Vec<_>>()).prop_shuffle()
                });
                (Just(facts), order)
            }),
        ) {
            let (mut register, mut value) = (Register::default(), 0);
            for index in &arrivals {
                let (ms, offered) = facts[*index];
                let is_newest = register.set_at() <= Some(at(ms));
                prop_assert_eq!(register.offer(&mut value, offered, at(ms)), is_newest);
            }
            let last = facts.iter().map(|(ms, _)| *ms).max().unwrap();
            let newest = arrivals.iter().rev().map(|index| facts[*index]).find(|(ms, _)| *ms == last).unwrap();
            prop_assert_eq!((register, value), (Register::by_application(at(last)), newest.1));
        }

        /// A request counts after everything that arrived before it, and a fact after it only if the fact is not older.
        #[test]
        fn a_request_counts_until_a_fact_that_is_no_older_than_its_time(
            writes in proptest::collection::vec(
                prop_oneof![
                    fact().prop_map(|(ms, value)| Write::Fact(ms, value)),
                    fact().prop_map(|(ms, value)| Write::Request(ms, value)),
                ],
                1..12,
            ),
        ) {
            let (mut register, mut value) = (Register::default(), 0);
            // The time, the value and the writer of the newest write.
            let mut newest: Option<(FactTime, u32, bool)> = None;
            for write in &writes {
                apply(&mut register, &mut value, write);
                let last = newest.map(|newest| newest.0);
                match write {
                    Write::Fact(ms, offered) if last <= Some(at(*ms)) => newest = Some((at(*ms), *offered, false)),
                    Write::Fact(..) => {}
                    Write::Request(_, wanted) => {
                        prop_assert!(register.set_at() > last);
                        newest = register.set_at().map(|at| (at, *wanted, true));
                    }
                }
                let (at, newest_value, by_api) = newest.unwrap();
                prop_assert_eq!((register.set_at(), value), (Some(at), newest_value));
                prop_assert_eq!(register.is_set_by_application(), !by_api);
            }
        }
    }

    #[test]
    fn only_a_value_of_the_application_is_confirmed() {
        let (mut register, mut value) = (Register::default(), "nobody's");
        let [first, second, third] = [1, 2, 3].map(Timestamp::from_ms);
        assert!(!register.set(&mut value, "ours", first));
        assert!(!register.set(&mut value, "ours", second));
        assert!(register.offer(&mut value, "theirs", second.into()));
        assert!(register.set(&mut value, "theirs", third));
        assert!(!register.offer(&mut value, "theirs", second.into()));
    }

    #[test]
    fn a_request_counts_after_a_fact_within_its_millisecond() {
        let found = FactTime::parse("2026-11-20T09:30:00.100900000Z").unwrap();
        let at = found.timestamp().after(One::whole(Register::by_application(found)).last_write());
        assert!(FactTime::from(at) > found);
    }
}
