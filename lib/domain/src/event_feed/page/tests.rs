//! Readers of a feed that grows, is erased from and forgets, against the plain list of its events.

use proptest::prelude::*;

use super::*;
use crate::event::tests::event;
use crate::id::EventId;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(1_790_000_000_000 + ms)
}

/// Builds a feed whose events are that many milliseconds apart. Every third event is a message, others new clients.
fn feed(gaps_ms: &[u16], began_at: Timestamp) -> Vec<Stored> {
    let (mut position, mut stored_at) = (FeedPosition::first(began_at), began_at);
    let items = gaps_ms.iter().enumerate().map(|(index, gap_ms)| {
        stored_at = stored_at + chrono::TimeDelta::milliseconds((*gap_ms).into());
        let event_type = if index % 3 == 2 { EventType::MessageReceived } else { EventType::NewClient };
        let event = Event {
            id: EventId::derive(stored_at.ms(), &[&index.to_string()]),
            occurred_at: stored_at,
            event_type: event_type.into(),
            ..event()
        };
        let item = Stored { position, stored_at, event: Some(event) };
        position = position.next(stored_at);
        item
    });
    items.collect()
}

/// Reads the items of a feed as the store does: up to `most` of all types, then up to `most` of each of the reader's.
fn scan(feed: &[Stored], reader: &FeedReader, most: usize) -> Scan {
    let is_behind = |item: &&Stored| match (reader.order, reader.cursor) {
        (Order::Asc, Some(cursor)) => item.position > cursor.position,
        (Order::Desc, Some(cursor)) => item.position < cursor.position,
        (_, None) => true,
    };
    let mut items: Vec<Stored> = feed.iter().filter(is_behind).cloned().collect();
    if reader.order == Order::Desc {
        items.reverse();
    }
    let rest = items.split_off(items.len().min(most));
    let scan = Scan { is_end: rest.is_empty(), items, further: None };
    match reader.choose(&scan) {
        FeedChoice::ReadOn => Scan { further: Some(further(&rest, reader, most)), ..scan },
        _ => scan,
    }
}

fn further(rest: &[Stored], reader: &FeedReader, most: usize) -> Further {
    let is_of =
        |item: &Stored, named: EventType| item.event.as_ref().is_some_and(|event| event.event_type == named.into());
    let of_type = |named: &EventType| rest.iter().filter(|item| is_of(item, *named)).take(most).cloned().collect();
    let of_types: Vec<Vec<Stored>> = reader.types.iter().map(of_type).collect();
    let last = rest.last().map_or_else(FeedPosition::origin, |item| item.position);
    Further::merge(of_types, most, reader.order, if reader.order == Order::Asc { last } else { FeedPosition::origin() })
}

fn reader(order: Order, limit: usize) -> FeedReader {
    FeedReader { types: EventType::ALL.to_vec(), since: None, order, cursor: None, limit, now: at(0) }
}

/// The ids of a page, its cursor, and if there is more.
fn read(feed: &[Stored], reader: &FeedReader, most: usize) -> (Vec<String>, Option<FeedCursor>, bool) {
    match reader.choose(&scan(feed, reader, most)) {
        FeedChoice::Page { events, next, has_more } => {
            (events.into_iter().map(|event| event.id.to_string()).collect(), next, has_more)
        }
        choice => panic!("{choice:?}"),
    }
}

fn ids<'a>(items: impl IntoIterator<Item = &'a Stored>) -> Vec<String> {
    items.into_iter().filter_map(|item| Some(item.event.as_ref()?.id.to_string())).collect()
}

proptest! {
    #[test]
    fn a_reader_of_a_growing_feed_gets_each_event_once_in_order(
        gaps_ms in prop::collection::vec(0u16..3, 0..40),
        steps in prop::collection::vec((0usize..6, 1usize..5, 1usize..5), 1..30),
        of_messages: bool,
    ) {
        let whole = feed(&gaps_ms, at(0));
        let types = if of_messages { vec![EventType::MessageReceived] } else { EventType::ALL.to_vec() };
        let wanted = |item: &&Stored| !of_messages || item.event.as_ref().unwrap().event_type == types[0].into();
        let (mut stored, mut got, mut cursor) = (0, Vec::new(), None);
        for (grows, limit, most) in steps.into_iter().chain(std::iter::repeat_n((40, 4, 4), 40)) {
            stored = (stored + grows).min(whole.len());
            let reader = FeedReader { types: types.clone(), cursor, ..reader(Order::Asc, limit) };
            let (ids, next, _) = read(&whole[..stored], &reader, most);
            prop_assert!(ids.len() <= limit);
            got.extend(ids);
            cursor = Some(next.expect("an ascending page has a cursor"));
        }
        prop_assert_eq!(got, ids(whole.iter().filter(wanted)));
    }

    #[test]
    fn a_descending_reader_gets_the_events_of_its_first_page_and_older_ones(
        gaps_ms in prop::collection::vec(0u16..3, 0..40),
        limit in 1usize..5,
        most in 1usize..5,
        since in 0i64..60,
        later in 0usize..5,
    ) {
        let whole = feed(&gaps_ms, at(0));
        let first = whole.len().saturating_sub(later);
        let (mut got, mut cursor, mut stored) = (Vec::new(), None, first);
        loop {
            let since = Some(at(since));
            let reader = FeedReader { cursor, since, ..reader(Order::Desc, limit) };
            let (ids, next, has_more) = read(&whole[..stored], &reader, most);
            got.extend(ids);
            prop_assert_eq!(next.is_some(), has_more);
            cursor = next;
            if cursor.is_none() {
                break;
            }
            stored = whole.len();
        }
        let wanted = whole[..first].iter().rev().filter(|item| item.stored_at >= at(since));
        prop_assert_eq!(got, ids(wanted));
    }
}

#[test]
fn a_page_says_if_there_is_more_and_a_further_type_is_no_more() {
    let feed = feed(&[1; 5], at(0));
    let all = reader(Order::Asc, 5);
    assert!(!read(&feed, &all, 9).2);
    assert!(read(&feed, &FeedReader { limit: 4, ..all.clone() }, 9).2);
    let of_messages = FeedReader { types: vec![EventType::MessageReceived], limit: 1, ..all };
    let (ids, next, has_more) = read(&feed, &of_messages, 9);
    assert_eq!((ids.len(), has_more), (1, false));
    assert_eq!(next.unwrap().position, feed[4].position, "the two events behind the message are passed");
}

#[test]
fn items_that_were_not_read_are_asked_for() {
    let feed = feed(&[1; 5], at(0));
    for order in Order::ALL {
        let reader = reader(order, 3);
        let nearest = Scan { further: None, ..scan(&feed, &reader, 3) };
        assert_eq!(reader.choose(&nearest), FeedChoice::ReadOn, "a further event decides");
        let (ids, next, has_more) = read(&feed, &reader, 3);
        assert_eq!((ids.len(), next.is_some(), has_more), (3, true, true));
    }
}

#[test]
fn a_page_goes_as_far_as_the_items_of_all_types_are_known() {
    // New clients and messages: n n m n n m n n m.
    let feed = feed(&[1; 9], at(0));
    for order in Order::ALL {
        let mut items = feed.clone();
        if order == Order::Desc {
            items.reverse();
        }
        let (nearest, rest) = items.split_at(1);
        let reader = reader(order, 9);
        // One item of each type: the farther of the two may have unread items before it.
        let further = Some(further(rest, &reader, 1));
        let scan = Scan { items: nearest.to_vec(), is_end: false, further };
        let FeedChoice::Page { events, has_more, .. } = reader.choose(&scan) else { panic!("a page") };
        assert_eq!((events.len(), has_more), (2, true), "{order:?}");
    }
}

#[test]
fn an_erased_event_is_passed() {
    let mut feed = feed(&[1; 3], at(0));
    feed[1].event = None;
    for order in Order::ALL {
        assert_eq!(read(&feed, &reader(order, 9), 9).0.len(), 2);
    }
}

#[test]
fn a_page_ends_before_an_event_that_is_being_stored() {
    let mut feed = feed(&[1; 4], at(0));
    let missing = feed.remove(2);
    let all = reader(Order::Asc, 9);
    let (ids, next, has_more) = read(&feed, &all, 9);
    assert_eq!((ids.len(), has_more), (2, true));
    let behind = FeedReader { cursor: next, ..all };
    assert_eq!(behind.choose(&scan(&feed, &behind, 9)), FeedChoice::Gap);
    feed.insert(2, missing);
    assert_eq!(read(&feed, &behind, 9).0, self::ids(&feed[2..]));
}

#[test]
fn a_feed_that_begins_again_is_read_by_a_cursor_from_before() {
    let old = feed(&[1; 2], at(0));
    let polling = reader(Order::Asc, 9);
    let cursor = read(&old, &polling, 9).1;
    let month = FEED_RETENTION.num_milliseconds();
    let new = feed(&[1; 2], at(3 * month));
    let later = FeedReader { cursor, now: at(3 * month), ..polling };
    assert_eq!(read(&new, &later, 9).0, ids(&new));
}

#[test]
fn the_feed_begins_at_the_oldest_kept_event_and_a_cursor_counts_as_long_as_its_events_are_kept() {
    let month = FEED_RETENTION.num_milliseconds();
    let feed = feed(&[1, 10, 10], at(0));
    let now = at(month + 5);
    let all = FeedReader { now, ..reader(Order::Asc, 9) };
    assert_eq!(read(&feed, &all, 9).0, ids(&feed[1..]), "the first event was stored earlier");
    assert_eq!(all.stored_since(), at(5));
    // The cursor of a page with more behind it ages with the next event, the cursor of the last page with itself.
    let (_, next, _) = read(&feed, &FeedReader { limit: 1, ..all.clone() }, 9);
    assert_eq!(next.unwrap().as_of, feed[2].stored_at);
    assert_eq!(read(&feed, &all, 9).1.unwrap().as_of, now);
}

#[test]
fn since_asks_for_the_time_of_the_event() {
    let mut feed = feed(&[10; 4], at(0));
    // A late event: it happened before it was stored.
    if let Some(event) = &mut feed[3].event {
        event.occurred_at = at(5);
    }
    let from_the_third = |order| FeedReader { since: Some(at(30)), ..reader(order, 9) };
    for order in Order::ALL {
        assert_eq!(read(&feed, &from_the_third(order), 9).0, ids(&feed[2..3]));
    }
}
