//! No double booking: callers who want overlapping times of one coach at the same moment, on calendars with other zones and buffers,
//! beside the application's own events, moves and cancellations, while transactions meet and answers get lost.

use std::collections::BTreeSet;
use std::future::IntoFuture;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use futures::future::{join, join_all, join3};
use serde_json::json;

use crate::crm::bookings::ledger::{Told, holds, lists_hold, read_told};
use crate::crm::bookings::{CALENDAR, Desk, LEAD, event, path, slot, to};
use crate::world::{Call, Caller, Fact, Reply, World, uuid};

/// Coaches whose rounds go on side by side, rounds of each, callers in a round.
const OWNERS: usize = 4;
/// `cargo test -p behaviour --features long-simulation races` plays more of them.
const ROUNDS: usize = if cfg!(feature = "long-simulation") { 100 } else { 20 };
const CALLERS: usize = 16;
/// Keys of a coach: no key makes more than 300 calls a minute.
const KEYS: usize = 8;
/// Days between two rounds of a coach: none is in another's way.
const DAYS_A_ROUND: usize = 4;
/// How often a call without a definite answer is repeated.
const MOST_REPEATS: usize = 50;

/// A calendar: minutes of its zone before UTC, of its slots, and before and after them.
struct Shelf {
    id: u64,
    zone: &'static str,
    offset: i64,
    minutes: i64,
    before: i64,
    after: i64,
}

/// Slots start every quarter of an hour.
const STEP: i64 = 15;
const SHELVES: [Shelf; 3] = [
    Shelf { id: 20, zone: "UTC", offset: 0, minutes: 60, before: 0, after: 0 },
    Shelf { id: 21, zone: "Asia/Kolkata", offset: 330, minutes: 45, before: 15, after: 30 },
    Shelf { id: 22, zone: "Pacific/Honolulu", offset: -600, minutes: 30, before: 60, after: 0 },
];

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A coach with calendars and keys, and what has been done so far.
pub(crate) struct Owner<'w> {
    pub(crate) world: &'w World,
    number: usize,
    pub(crate) id: String,
    pub(crate) keys: Vec<Caller>,
    calls: usize,
    /// Bookings that the API has made.
    pub(crate) booked: BTreeSet<String>,
    /// Events that were stored before anything was booked around them.
    pub(crate) stored_before: BTreeSet<String>,
}

impl<'w> Owner<'w> {
    async fn new(world: &'w World, number: usize) -> Self {
        let id = format!("owner-{number}");
        let coach = world.coach(&id).await;
        let calendars = SHELVES.iter().map(|shelf| {
            Fact::calendar(&id, &uuid(shelf.id))
                .with("time_zone", shelf.zone)
                .with("slot_minutes", shelf.minutes)
                .with("slot_interval_minutes", STEP)
                .with("buffer_before_minutes", shelf.before)
                .with("buffer_after_minutes", shelf.after)
        });
        world.facts(calendars.chain([Fact::contact(&id, &uuid(LEAD))])).await;
        let mut keys = Vec::new();
        for _ in 0..KEYS {
            keys.push(coach.crm_key_with(&["bookings.read", "bookings.write"]).await);
        }
        Self { world, number, id, keys, calls: 0, booked: BTreeSet::new(), stored_before: BTreeSet::new() }
    }

    fn key(&mut self) -> &Caller {
        self.calls += 1;
        &self.keys[self.calls % KEYS]
    }

    fn book(&mut self, shelf: &Shelf, at: DateTime<Utc>) -> Call {
        let (date, time) = wall_clock(shelf, at);
        let draft = json!({ "leadId": uuid(LEAD), "calendarId": uuid(shelf.id), "date": date, "time": time });
        let once = format!("race-{}", self.world.number());
        self.key().post("/v1/crm/bookings", draft).once(&once)
    }

    fn reschedule(&mut self, booking: &str, shelf: &Shelf, at: DateTime<Utc>) -> Call {
        let (date, time) = wall_clock(shelf, at);
        let once = format!("race-{}", self.world.number());
        let to = json!({ "leadId": uuid(LEAD), "date": date, "time": time });
        self.key().patch(&path(booking), to).once(&once)
    }

    fn cancel(&mut self, booking: &str) -> Call {
        let once = format!("race-{}", self.world.number());
        self.key().delete(&path(booking)).json(&json!({ "leadId": uuid(LEAD) })).once(&once)
    }

    /// Keeps the ids of what was booked; how many.
    fn keep(&mut self, replies: &[Reply]) -> usize {
        let made = replies.iter().filter(|reply| reply.status == 201);
        let ids: Vec<String> = made.map(|reply| reply.body["booking"]["id"].as_str().unwrap().to_owned()).collect();
        self.booked.extend(ids.iter().cloned());
        ids.len()
    }
}

fn wall_clock(shelf: &Shelf, at: DateTime<Utc>) -> (NaiveDate, String) {
    let local = (at + TimeDelta::minutes(shelf.offset)).naive_utc();
    (local.date(), local.format("%H:%M").to_string())
}

/// The answer to a call, which is repeated under its key until it is a definite one.
async fn insist(call: Call) -> Reply {
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
    join_all(calls.into_iter().map(insist)).await
}

#[track_caller]
fn each_is(replies: &[Reply], allowed: &[(u16, &str)]) {
    for reply in replies {
        let code = reply.body["code"].as_str().unwrap_or_default();
        assert!(allowed.contains(&(reply.status, code)), "{} {}", reply.status, reply.text);
    }
}

const TAKEN: (u16, &str) = (409, "slot_unavailable");

/// What a round of a coach is about.
enum Round {
    /// All want times of which only one can be had: one gets it. The application may put an event there meanwhile.
    OneTime { wanted: Vec<(usize, DateTime<Utc>)>, beside: Option<Fact> },
    /// Some book, some move these bookings, one cancels, and the application puts events there, all in the same few hours.
    SameHours { held: Vec<(usize, String)>, feed: Vec<Fact> },
}

/// A round that is about to begin.
struct Ready {
    base: DateTime<Utc>,
    dice: Dice,
    round: Round,
}

impl Ready {
    /// What stands there before the round: an event of the application's, and bookings around it.
    async fn new(owner: &mut Owner<'_>, number: usize, first: DateTime<Utc>) -> Self {
        let mut dice = Dice((number * OWNERS) as u64 + owner.number as u64);
        // In the middle of the days of all zones, or over the midnight of one.
        let minutes = [720, 1_350, 1_080][number % 3];
        let base = first + TimeDelta::days((number * DAYS_A_ROUND) as i64) + TimeDelta::minutes(minutes);
        let (world, coach) = (owner.world, owner.id.clone());
        let told = |dice: &mut Dice, steps: u64| {
            let shelf = dice.roll(SHELVES.len() as u64 + 1) as usize;
            let minutes = STEP * (1 + dice.roll(5) as i64);
            let starts = base + TimeDelta::minutes(STEP * steps as i64);
            event(&coach, &uuid(1_000_000 + world.number()), SHELVES.get(shelf).map(|shelf| shelf.id), starts, minutes)
        };
        if number % 5 < 2 {
            let beside = (number % 5 == 1).then(|| told(&mut dice, 0));
            let midnight = first + TimeDelta::days((number * DAYS_A_ROUND) as i64 + 1);
            let wanted = match number % 2 {
                0 => (0..SHELVES.len()).map(|shelf| (shelf, base)).collect(),
                // The calendar in Honolulu keeps an hour before what it has: on no day do both of these stand.
                _ => [0, 45].map(|before| (2, midnight + TimeDelta::minutes(-before))).to_vec(),
            };
            return Self { base, dice, round: Round::OneTime { wanted, beside } };
        }
        let steps = dice.roll(20);
        let early = told(&mut dice, steps);
        owner.stored_before.insert(early.detail["event_id"].as_str().unwrap().to_owned());
        owner.world.facts([early]).await;
        let feed = (0..3).map(|_| {
            let steps = dice.roll(24);
            told(&mut dice, steps)
        });
        let feed = feed.collect();
        let books = [(0, base), (1, base + TimeDelta::hours(5))].map(|(shelf, at)| owner.book(&SHELVES[shelf], at));
        let made = at_once(books.to_vec()).await;
        each_is(&made, &[(201, ""), TAKEN]);
        owner.keep(&made);
        let id = |reply: &Reply| reply.body["booking"]["id"].as_str().map(str::to_owned);
        let held = made.iter().enumerate().filter_map(|(shelf, reply)| Some((shelf, id(reply)?))).collect();
        Self { base, dice, round: Round::SameHours { held, feed } }
    }

    async fn play(self, owner: &mut Owner<'_>) {
        let Self { base, mut dice, round } = self;
        match round {
            Round::OneTime { wanted, beside } => one_gets_it(owner, &wanted, beside).await,
            Round::SameHours { held, feed } => all_want_something(owner, base, &mut dice, &held, feed).await,
        }
    }
}

async fn all_want_something(
    owner: &mut Owner<'_>,
    base: DateTime<Utc>,
    dice: &mut Dice,
    held: &[(usize, String)],
    feed: Vec<Fact>,
) {
    let at = |steps: u64| base + TimeDelta::minutes(STEP * steps as i64);
    let mut changes = Vec::new();
    for (shelf, booking) in held {
        for _ in 0..2 {
            changes.push(owner.reschedule(booking, &SHELVES[*shelf], at(dice.roll(24))));
        }
    }
    changes.extend(held.last().map(|(_, booking)| owner.cancel(booking)));
    let books = (changes.len()..CALLERS).map(|_| {
        let shelf = dice.roll(SHELVES.len() as u64) as usize;
        owner.book(&SHELVES[shelf], at(dice.roll(24)))
    });
    let books: Vec<Call> = books.collect();
    let (booked, changed, ()) = join3(at_once(books), at_once(changes), owner.world.put(feed)).await;
    each_is(&booked, &[(201, ""), TAKEN]);
    each_is(&changed, &[(200, ""), (409, "booking_not_active"), TAKEN]);
    owner.keep(&booked);
}

async fn one_gets_it(owner: &mut Owner<'_>, wanted: &[(usize, DateTime<Utc>)], beside: Option<Fact>) {
    let wanted = wanted.iter().cycle().take(CALLERS);
    let calls: Vec<Call> = wanted.map(|(shelf, at)| owner.book(&SHELVES[*shelf], *at)).collect();
    let is_alone = beside.is_none();
    let (replies, ()) = join(at_once(calls), owner.world.put(beside)).await;
    each_is(&replies, &[(201, ""), TAKEN]);
    let winners = owner.keep(&replies);
    assert!(winners == 1 || (winners == 0 && !is_alone), "{winners} winners");
}

#[tokio::test]
async fn no_two_bookings_ever_overlap_and_none_is_made_over_what_is_stored() {
    let world = World::start().await;
    let mut owners = join_all((0..OWNERS).map(|number| Owner::new(&world, number))).await;
    let first = world.midnight_in(2).await;
    let mut told = Told::new();
    for number in 0..ROUNDS {
        let ready = join_all(owners.iter_mut().map(|owner| Ready::new(owner, number, first))).await;
        let lost = if number % 4 == 3 { 3 } else { 0 };
        world.faults(json!({ "store_conflicts": 8, "store_lost_answers": lost })).await;
        join_all(owners.iter_mut().zip(ready).map(|(owner, ready)| ready.play(owner))).await;
        world.faults(json!({ "store_conflicts": 0, "store_lost_answers": 0 })).await;
        world.settle().await;
        read_told(&world, &mut told).await;
        if number % 10 == 9 {
            // What met too many others at once comes again.
            world.advance_s(200).await;
            read_told(&world, &mut told).await;
            join_all(owners.iter().map(|owner| holds(owner, &told))).await;
        }
    }
    join_all(owners.iter().map(lists_hold)).await;
    let once: BTreeSet<_> = told.values().map(|(coach, pair, times)| (coach, pair, times.to_string())).collect();
    assert_eq!(once.len(), told.len(), "each overlap is told once");
    assert!(world.set_aside().await.is_empty());
    let booked: usize = owners.iter().map(|owner| owner.booked.len()).sum();
    assert!(booked > OWNERS * ROUNDS, "{booked}");
}

#[tokio::test]
async fn of_moves_of_bookings_that_are_longer_or_shorter_than_a_slot_of_now_one_gets_the_time() {
    let world = World::start().await;
    let desk = Desk { world: &world, key: world.booking_coach("ada").await };
    let with = |minutes: u32| {
        Fact::calendar("ada", &uuid(CALENDAR)).with("slot_minutes", minutes).with("slot_interval_minutes", 30)
    };
    // Lengths of two bookings, the calendar's slots by the time that they move, and where they want to go: each
    // overlaps the others.
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
            world.facts([with(length)]).await;
            bookings.push(desk.booked(slot(date, time)).await);
        }
        world.facts([with(slots_of_now)]).await;
        let once = || format!("race-{}", world.number());
        let mut calls: Vec<Call> = bookings
            .iter()
            .zip([one, other])
            .map(|(booking, time)| desk.key.patch(&path(booking), to(date, time)).once(&once()))
            .collect();
        calls.push(desk.key.post("/v1/crm/bookings", slot(date, third)).once(&once()));
        let replies = at_once(calls).await;
        each_is(&replies, &[(200, ""), (201, ""), TAKEN]);
        let done = replies.iter().filter(|reply| reply.status < 300).count();
        let texts: Vec<&String> = replies.iter().map(|reply| &reply.text).collect();
        assert_eq!(done, 1, "{texts:?}");
    }
}

#[tokio::test]
async fn calls_at_once_for_times_that_do_not_meet_all_succeed() {
    let world = World::start().await;
    let mut owner = Owner::new(&world, 1).await;
    let base = world.midnight_in(3).await;
    let calls: Vec<Call> = (0..CALLERS as i64).map(|n| owner.book(&SHELVES[0], base + TimeDelta::hours(n))).collect();
    let replies = at_once(calls.clone()).await;
    each_is(&replies, &[(201, "")]);
    assert_eq!(owner.keep(&replies), CALLERS);
    let again = join_all(calls.into_iter().map(Call::into_future)).await;
    for (first, again) in replies.iter().zip(&again) {
        assert!(again.is_replay());
        assert_eq!(first.body, again.body);
    }
}
