//! No double booking under concurrency. Callers want overlapping times of one coach on calendars with different zones
//! and buffers. Meanwhile the application sends events, bookings are moved and cancelled, transactions conflict and
//! answers get lost.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use futures::future::{join, join_all, join3};
use serde_json::json;

use crate::crm::bookings::ledger::{EmittedConflicts, assert_events, assert_invariants, assert_lists, read_conflicts};
use crate::crm::bookings::{CALENDAR, Desk, LEAD, event, path, slot, to};
use crate::event_feed::reader_of;
use crate::world::{Call, Caller, Fact, Reply, World, uuid};

/// Coaches whose rounds run in parallel, rounds of each, callers in a round.
const OWNERS: usize = 4;
/// `cargo test -p behaviour --features long-simulation races` plays more of them.
const ROUNDS: usize = if cfg!(feature = "long-simulation") { 100 } else { 12 };
const CALLERS: usize = 16;
/// Keys of a coach: one key may send only 300 requests a minute.
const KEYS: usize = 8;
/// Days between two rounds of a coach, so that rounds do not conflict.
const DAYS_A_ROUND: usize = 4;
/// Most repeats of a call without a definite answer.
const MOST_REPEATS: usize = 50;

/// A calendar: minutes of its zone before UTC, of its slots, and of its buffers before and after.
struct CalendarSpec {
    id: u64,
    zone: &'static str,
    offset: i64,
    minutes: i64,
    before: i64,
    after: i64,
}

/// Slots start every quarter of an hour.
const STEP: i64 = 15;
const CALENDARS: [CalendarSpec; 3] = [
    CalendarSpec { id: 20, zone: "UTC", offset: 0, minutes: 60, before: 0, after: 0 },
    CalendarSpec { id: 21, zone: "Asia/Kolkata", offset: 330, minutes: 45, before: 15, after: 30 },
    CalendarSpec { id: 22, zone: "Pacific/Honolulu", offset: -600, minutes: 30, before: 60, after: 0 },
];

const BOOKING_EVENTS: [&str; 3] = ["booking_created", "booking_rescheduled", "booking_cancelled"];

/// Pseudo-random numbers, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A coach with calendars and keys, and the history so far.
pub(crate) struct Owner<'w> {
    pub(crate) world: &'w World,
    number: usize,
    pub(crate) id: String,
    pub(crate) keys: Vec<Caller>,
    /// A reader of the events of bookings.
    pub(crate) reader: Caller,
    calls: usize,
    /// Ids of bookings made through the API.
    pub(crate) booked: BTreeSet<String>,
    /// Ids of events that were stored before any booking around them.
    pub(crate) stored_before: BTreeSet<String>,
}

impl<'w> Owner<'w> {
    async fn new(world: &'w World, number: usize) -> Self {
        let id = format!("owner-{number}");
        let coach = world.coach(&id).await;
        let calendars = CALENDARS.iter().map(|calendar| {
            Fact::calendar(&id, &uuid(calendar.id))
                .with("time_zone", calendar.zone)
                .with("slot_minutes", calendar.minutes)
                .with("slot_interval_minutes", STEP)
                .with("buffer_before_minutes", calendar.before)
                .with("buffer_after_minutes", calendar.after)
        });
        world.apply(calendars.chain([Fact::contact(&id, &uuid(LEAD))])).await;
        let mut keys = Vec::new();
        for _ in 0..KEYS {
            keys.push(coach.crm_key_with(&["bookings.read", "bookings.write"]).await);
        }
        let reader = reader_of(&coach, &BOOKING_EVENTS, "identifiers").await;
        Self { world, number, id, keys, reader, calls: 0, booked: BTreeSet::new(), stored_before: BTreeSet::new() }
    }

    fn key(&mut self) -> &Caller {
        self.calls += 1;
        &self.keys[self.calls % KEYS]
    }

    fn book(&mut self, calendar: &CalendarSpec, at: DateTime<Utc>) -> Call {
        let (date, time) = wall_clock(calendar, at);
        let draft = json!({ "leadId": uuid(LEAD), "calendarId": uuid(calendar.id), "date": date, "time": time });
        let once = format!("race-{}", self.world.number());
        self.key().post("/v1/crm/bookings", draft).idempotent(&once)
    }

    fn reschedule(&mut self, booking: &str, calendar: &CalendarSpec, at: DateTime<Utc>) -> Call {
        let (date, time) = wall_clock(calendar, at);
        let once = format!("race-{}", self.world.number());
        let to = json!({ "leadId": uuid(LEAD), "date": date, "time": time });
        self.key().patch(&path(booking), to).idempotent(&once)
    }

    fn cancel(&mut self, booking: &str) -> Call {
        let once = format!("race-{}", self.world.number());
        self.key().delete(&path(booking)).json(&json!({ "leadId": uuid(LEAD) })).idempotent(&once)
    }

    /// Keeps the ids of the bookings made and returns their number.
    fn record_bookings(&mut self, replies: &[Reply]) -> usize {
        let made = replies.iter().filter(|reply| reply.status == 201);
        let ids: Vec<String> = made.map(|reply| reply.body["booking"]["id"].as_str().unwrap().to_owned()).collect();
        self.booked.extend(ids.iter().cloned());
        ids.len()
    }
}

fn wall_clock(calendar: &CalendarSpec, at: DateTime<Utc>) -> (NaiveDate, String) {
    let local = (at + TimeDelta::minutes(calendar.offset)).naive_utc();
    (local.date(), local.format("%H:%M").to_string())
}

/// Repeats a call under its key until the answer is definite.
pub(crate) async fn retry_until_definite(call: Call) -> Reply {
    for _ in 0..MOST_REPEATS {
        let reply = call.clone().await;
        let is_open = matches!(reply.status, 500 | 503) || reply.body["code"] == "idempotency_in_progress";
        if !is_open {
            return reply;
        }
    }
    panic!("no definite answer");
}

async fn at_once(calls: Vec<Call>) -> Vec<Reply> {
    join_all(calls.into_iter().map(retry_until_definite)).await
}

#[track_caller]
fn assert_each(replies: &[Reply], allowed: &[(u16, &str)]) {
    for reply in replies {
        let code = reply.body["code"].as_str().unwrap_or_default();
        assert!(allowed.contains(&(reply.status, code)), "{} {}", reply.status, reply.text);
    }
}

const TAKEN: (u16, &str) = (409, "slot_unavailable");

/// The kind of a coach's round.
enum Round {
    /// All callers want overlapping times: exactly one booking succeeds. The application may add an event meanwhile.
    OneTime { wanted: Vec<(usize, DateTime<Utc>)>, beside: Option<Fact> },
    /// In the same few hours, some callers book, some move bookings, one cancels, and the application adds events.
    SameHours { held: Vec<(usize, String)>, feed: Vec<Fact> },
}

/// A prepared round.
struct Ready {
    base: DateTime<Utc>,
    dice: Dice,
    round: Round,
}

impl Ready {
    /// Prepares a round: an event of the application, and bookings around it.
    async fn new(owner: &mut Owner<'_>, number: usize, first: DateTime<Utc>) -> Self {
        let mut dice = Dice((number * OWNERS) as u64 + owner.number as u64);
        // Around noon in all zones, or across midnight in one.
        let minutes = [720, 1_350, 1_080][number % 3];
        let base = first + TimeDelta::days((number * DAYS_A_ROUND) as i64) + TimeDelta::minutes(minutes);
        let (world, coach) = (owner.world, owner.id.clone());
        let application_event = |dice: &mut Dice, steps: u64| {
            let calendar = dice.roll(CALENDARS.len() as u64 + 1) as usize;
            let minutes = STEP * (1 + dice.roll(5) as i64);
            let starts = base + TimeDelta::minutes(STEP * steps as i64);
            event(
                &coach,
                &uuid(1_000_000 + world.number()),
                CALENDARS.get(calendar).map(|calendar| calendar.id),
                starts,
                minutes,
            )
        };
        if number % 5 < 2 {
            let beside = (number % 5 == 1).then(|| application_event(&mut dice, 0));
            let midnight = first + TimeDelta::days((number * DAYS_A_ROUND) as i64 + 1);
            let wanted = match number % 2 {
                0 => (0..CALENDARS.len()).map(|calendar| (calendar, base)).collect(),
                // The calendar in Honolulu keeps an hour before its bookings: no day has room for both of these.
                _ => [0, 45].map(|before| (2, midnight + TimeDelta::minutes(-before))).to_vec(),
            };
            return Self { base, dice, round: Round::OneTime { wanted, beside } };
        }
        let steps = dice.roll(20);
        let early = application_event(&mut dice, steps);
        owner.stored_before.insert(early.detail["event_id"].as_str().unwrap().to_owned());
        owner.world.apply([early]).await;
        let feed = (0..3).map(|_| {
            let steps = dice.roll(24);
            application_event(&mut dice, steps)
        });
        let feed = feed.collect();
        let books =
            [(0, base), (1, base + TimeDelta::hours(5))].map(|(calendar, at)| owner.book(&CALENDARS[calendar], at));
        let made = at_once(books.to_vec()).await;
        assert_each(&made, &[(201, ""), TAKEN]);
        owner.record_bookings(&made);
        let id = |reply: &Reply| reply.body["booking"]["id"].as_str().map(str::to_owned);
        let held = made.iter().enumerate().filter_map(|(calendar, reply)| Some((calendar, id(reply)?))).collect();
        Self { base, dice, round: Round::SameHours { held, feed } }
    }

    async fn play(self, owner: &mut Owner<'_>) {
        let Self { base, mut dice, round } = self;
        match round {
            Round::OneTime { wanted, beside } => compete_for_one_time(owner, &wanted, beside).await,
            Round::SameHours { held, feed } => compete_for_same_hours(owner, base, &mut dice, &held, feed).await,
        }
    }
}

async fn compete_for_same_hours(
    owner: &mut Owner<'_>,
    base: DateTime<Utc>,
    dice: &mut Dice,
    held: &[(usize, String)],
    feed: Vec<Fact>,
) {
    let at = |steps: u64| base + TimeDelta::minutes(STEP * steps as i64);
    let mut changes = Vec::new();
    for (calendar, booking) in held {
        for _ in 0..2 {
            changes.push(owner.reschedule(booking, &CALENDARS[*calendar], at(dice.roll(24))));
        }
    }
    changes.extend(held.last().map(|(_, booking)| owner.cancel(booking)));
    let books = (changes.len()..CALLERS).map(|_| {
        let calendar = dice.roll(CALENDARS.len() as u64) as usize;
        owner.book(&CALENDARS[calendar], at(dice.roll(24)))
    });
    let books: Vec<Call> = books.collect();
    let (booked, changed, ()) = join3(at_once(books), at_once(changes), owner.world.publish(feed)).await;
    assert_each(&booked, &[(201, ""), TAKEN]);
    assert_each(&changed, &[(200, ""), (409, "booking_not_active"), TAKEN]);
    owner.record_bookings(&booked);
}

async fn compete_for_one_time(owner: &mut Owner<'_>, wanted: &[(usize, DateTime<Utc>)], beside: Option<Fact>) {
    let wanted = wanted.iter().cycle().take(CALLERS);
    let calls: Vec<Call> = wanted.map(|(calendar, at)| owner.book(&CALENDARS[*calendar], *at)).collect();
    let is_alone = beside.is_none();
    let (replies, ()) = join(at_once(calls), owner.world.publish(beside)).await;
    assert_each(&replies, &[(201, ""), TAKEN]);
    let winners = owner.record_bookings(&replies);
    assert!(winners == 1 || (winners == 0 && !is_alone), "{winners} winners");
}

#[tokio::test]
async fn no_booking_overlaps_another_or_a_stored_event() {
    let world = World::start().await;
    let mut owners = join_all((0..OWNERS).map(|number| Owner::new(&world, number))).await;
    let first = world.midnight_in(2).await;
    let mut emitted = EmittedConflicts::new();
    for number in 0..ROUNDS {
        let ready = join_all(owners.iter_mut().map(|owner| Ready::new(owner, number, first))).await;
        let lost = if number % 4 == 3 { 3 } else { 0 };
        world.faults(json!({ "store_conflicts": 8, "store_lost_answers": lost })).await;
        join_all(owners.iter_mut().zip(ready).map(|(owner, ready)| ready.play(owner))).await;
        world.faults(json!({ "store_conflicts": 0, "store_lost_answers": 0 })).await;
        world.settle().await;
        read_conflicts(&world, &mut emitted).await;
        if number % 10 == 9 {
            // Facts that met too many conflicts are retried.
            world.advance_s(200).await;
            read_conflicts(&world, &mut emitted).await;
            join_all(owners.iter().map(|owner| assert_invariants(owner, &emitted))).await;
        }
    }
    world.advance_s(200).await;
    join_all(owners.iter().map(assert_lists)).await;
    join_all(owners.iter().map(assert_events)).await;
    let once: BTreeSet<_> = emitted.values().map(|(coach, pair, times)| (coach, pair, times.to_string())).collect();
    assert_eq!(once.len(), emitted.len(), "each overlap is emitted once");
    assert!(world.set_aside().await.is_empty());
    let booked: usize = owners.iter().map(|owner| owner.booked.len()).sum();
    assert!(booked > OWNERS * ROUNDS, "{booked}");
}

#[tokio::test]
async fn of_simultaneous_moves_one_succeeds_even_if_slot_lengths_have_changed() {
    let world = World::start().await;
    let desk = Desk { world: &world, key: world.booking_coach("ada").await };
    let with = |minutes: u32| {
        Fact::calendar("ada", &uuid(CALENDAR)).with("slot_minutes", minutes).with("slot_interval_minutes", 30)
    };
    // Lengths of two bookings, the calendar's slot length when they move, and their new times: each overlaps the
    // others.
    for (round, (lengths, slots_of_now, [one, other, third])) in [
        ([120, 120], 30, ["12:00", "13:30", "13:30"]),
        ([30, 90], 120, ["12:00", "11:00", "11:00"]),
        ([60, 30], 45, ["12:00", "12:30", "12:30"]),
    ]
    .into_iter()
    .enumerate()
    {
        let date = world.midnight_in(2 + round as i64).await.date_naive();
        let mut bookings = Vec::new();
        for (length, time) in lengths.into_iter().zip(["01:00", "05:00"]) {
            world.apply([with(length)]).await;
            bookings.push(desk.booked(slot(date, time)).await);
        }
        world.apply([with(slots_of_now)]).await;
        let once = || format!("race-{}", world.number());
        let mut calls: Vec<Call> = bookings
            .iter()
            .zip([one, other])
            .map(|(booking, time)| desk.key.patch(&path(booking), to(date, time)).idempotent(&once()))
            .collect();
        calls.push(desk.key.post("/v1/crm/bookings", slot(date, third)).idempotent(&once()));
        let replies = at_once(calls).await;
        assert_each(&replies, &[(200, ""), (201, ""), TAKEN]);
        let done = replies.iter().filter(|reply| reply.status < 300).count();
        let texts: Vec<&String> = replies.iter().map(|reply| &reply.text).collect();
        assert_eq!(done, 1, "{texts:?}");
    }
}

#[tokio::test]
async fn simultaneous_calls_for_disjoint_times_all_succeed() {
    let world = World::start().await;
    let mut owner = Owner::new(&world, 1).await;
    let base = world.midnight_in(3).await;
    let calls: Vec<Call> = (0..CALLERS as i64).map(|n| owner.book(&CALENDARS[0], base + TimeDelta::hours(n))).collect();
    let replies = at_once(calls).await;
    assert_each(&replies, &[(201, "")]);
    assert_eq!(owner.record_bookings(&replies), CALLERS);
}
