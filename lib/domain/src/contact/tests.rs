//! Writes to a contact, by the application and the API, and their order.

use proptest::prelude::*;

use super::*;
use crate::id::CoachId;

fn id() -> ContactId {
    ContactId::parse("0197a6a0-5c3b-7000-8000-2f1d3c4b5a69").unwrap()
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms)
}

fn email(local: &str) -> Email {
    Email::parse(&format!("{local}@example.com")).unwrap()
}

fn draft() -> ContactDraft {
    ContactDraft { name: "created".to_owned(), email: email("created") }
}

fn saved(name: &str, do_not_contact: bool) -> ContactSaved {
    ContactSaved {
        contact_id: id(),
        coach_id: CoachId::parse("ada").unwrap(),
        name: name.to_owned(),
        email: Some(email(name)),
        phone: Some(Phone::as_given(name)),
        do_not_contact,
        marketing: Marketing { email: true, sms: do_not_contact },
    }
}

#[test]
fn a_value_of_the_api_wins_over_older_records_and_loses_to_newer_ones() {
    let made = KnownContact::create(id(), &draft(), at(10));
    let older = KnownContact::apply_fact(Some(&made), &saved("older", true), at(9).into(), at(20)).unwrap();
    assert_eq!((older.contact.name.as_str(), older.contact.email.clone()), ("created", Some(email("created"))));
    assert!(older.contact.do_not_contact && older.contact.marketing.email, "the API has not spoken of these");
    let equal = KnownContact::apply_fact(Some(&made), &saved("equal", false), at(10).into(), at(20)).unwrap();
    assert_eq!((equal.contact.name.as_str(), equal.contact.email.clone()), ("equal", Some(email("equal"))));
    assert_eq!(KnownContact::apply_fact(Some(&equal), &saved("stale", false), at(9).into(), at(21)), None);
}

#[test]
fn confirming_the_applications_value_is_an_update_and_repeating_it_is_not() {
    let made = KnownContact::apply_fact(None, &saved("lee", true), at(10).into(), at(10)).unwrap();
    let patch = ContactPatch { name: Some("lee".to_owned()), do_not_contact: true };
    let confirmed = made.change(&patch, at(15));
    assert_eq!(confirmed.contact, Contact { updated_at: at(15), ..made.contact });
    let same = confirmed.change(&patch, at(30));
    assert_eq!(same.contact, confirmed.contact);
    let later = KnownContact::apply_fact(Some(&same), &saved("other", false), at(20).into(), at(40)).unwrap();
    assert!(later.contact.name == "lee" && later.contact.do_not_contact);
}

#[test]
fn a_later_change_wins_over_a_fact_between_the_two_even_if_requested_first() {
    let patch = |name: &str| ContactPatch { name: Some(name.to_owned()), do_not_contact: true };
    let made = KnownContact::create(id(), &draft(), at(100)).change(&patch("made first"), at(500));
    let changed = made.change(&patch("asked for first"), at(200));
    let applied = KnownContact::apply_fact(Some(&changed), &saved("between", false), at(300).into(), at(600)).unwrap();
    assert_eq!((applied.contact.name.as_str(), applied.contact.do_not_contact), ("asked for first", true));
}

#[test]
fn each_change_has_a_time_of_its_own() {
    let named = |name: &str| ContactPatch { name: Some(name.to_owned()), do_not_contact: false };
    let first = KnownContact::create(id(), &draft(), at(10)).change(&named("a"), at(10));
    let second = first.change(&named("b"), at(10));
    assert_eq!([first.contact.updated_at, second.contact.updated_at], [at(11), at(12)]);
}

#[test]
fn a_change_after_a_fact_from_a_fast_clock_is_shown_at_its_own_time_and_counts_after_the_fact() {
    let made = KnownContact::apply_fact(None, &saved("fast", false), at(3_600_000).into(), at(10)).unwrap();
    let patch = ContactPatch { name: Some("changed".to_owned()), do_not_contact: false };
    let changed = made.change(&patch, at(20));
    assert_eq!((changed.contact.updated_at, changed.last_written_at()), (at(20), at(3_600_001)));
    let equal = KnownContact::apply_fact(Some(&changed), &saved("equal", false), at(3_600_000).into(), at(30)).unwrap();
    assert_eq!((equal.contact.name.as_str(), equal.contact.updated_at), ("changed", at(30)));
}

/// A write at a time. A fact arrives some time later, and perhaps twice.
#[derive(Debug, Clone)]
enum Write {
    Record { name: String, do_not_contact: bool, delays: Vec<i64> },
    Set(ContactPatch),
}

fn write() -> impl Strategy<Value = Write> {
    let name = || "[a-c]";
    prop_oneof![
        (name(), any::<bool>(), proptest::collection::vec(0i64..300, 1..3))
            .prop_map(|(name, do_not_contact, delays)| Write::Record { name, do_not_contact, delays }),
        (proptest::option::of(name()), any::<bool>())
            .prop_map(|(name, do_not_contact)| Write::Set(ContactPatch { name, do_not_contact })),
    ]
}

proptest! {
    /// Facts arrive in any order and late: each field has the value of its latest write.
    #[test]
    fn the_latest_write_wins_field_by_field(writes in proptest::collection::vec(write(), 1..12)) {
        let mut arrivals: Vec<(i64, i64, &Write)> = Vec::new();
        for (number, write) in writes.iter().enumerate() {
            let written_at = 100 + 10 * i64::try_from(number).unwrap();
            match write {
                Write::Set(_) => arrivals.push((written_at, written_at, write)),
                Write::Record { delays, .. } => arrivals.extend(delays.iter().map(|delay| (written_at + delay, written_at, write))),
            }
        }
        arrivals.sort_by_key(|(arrives_at, written_at, _)| (*arrives_at, *written_at));
        let mut contact = KnownContact::create(id(), &draft(), at(50));
        for (arrives_at, written_at, write) in arrivals {
            contact = match write {
                Write::Set(patch) => contact.change(patch, at(written_at)),
                Write::Record { name, do_not_contact, .. } => {
                    let saved = saved(name, *do_not_contact);
                    let applied = KnownContact::apply_fact(Some(&contact), &saved, at(written_at).into(), at(arrives_at));
                    applied.unwrap_or(contact)
                }
            };
        }
        let (mut name, mut email, mut suppressed, mut phone) = ("created".to_owned(), email("created"), false, None);
        for write in &writes {
            match write {
                Write::Set(patch) => {
                    name = patch.name.clone().unwrap_or(name);
                    suppressed |= patch.do_not_contact;
                }
                Write::Record { name: saved_name, do_not_contact, .. } => {
                    let record = saved(saved_name, *do_not_contact);
                    (name, email, suppressed, phone) =
                        (record.name, record.email.unwrap(), record.do_not_contact, record.phone);
                }
            }
        }
        prop_assert_eq!(&contact.contact.name, &name);
        prop_assert_eq!(contact.contact.email.as_ref(), Some(&email));
        prop_assert_eq!(contact.contact.do_not_contact, suppressed);
        prop_assert_eq!(&contact.contact.phone, &phone);
        prop_assert_eq!(contact.registers.phone.set_at().is_some(), phone.is_some());
    }

    /// The API suppresses and never lifts: no request makes a suppressed contact one that may be contacted.
    #[test]
    fn no_change_through_the_api_lifts_the_suppression(names in proptest::collection::vec(proptest::option::of("[a-c]"), 1..6)) {
        let mut contact = KnownContact::apply_fact(None, &saved("lee", true), at(1).into(), at(1)).unwrap();
        for name in names {
            contact = contact.change(&ContactPatch { name, do_not_contact: false }, at(2));
            prop_assert!(contact.contact.do_not_contact && contact.contact.marketing == saved("lee", true).marketing);
        }
    }
}
