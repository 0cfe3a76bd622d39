//! Computed events, timeline by timeline, through the whole stack: the instant of each event. The modules hold the
//! tables.

mod case;
mod compliance;
mod inactivity;
mod places;
mod seeding;

use chrono::TimeDelta;

use crate::world::World;
use case::{Days, run};
pub(crate) use places::clocks_change_after;

/// Clocks change on day 3.
async fn days_before_the_change(world: &World, month: u32) -> Days {
    let soon = world.now().await.date_naive() + TimeDelta::days(10);
    Days(clocks_change_after(soon, month) - TimeDelta::days(3))
}

#[tokio::test]
async fn each_computed_event_is_emitted_at_the_start_of_a_match_and_again_only_after_rearming() {
    let world = World::start().await;
    let days = days_before_the_change(&world, 3).await;
    let mut cases = compliance::drops(days);
    cases.extend(compliance::milestones(days));
    cases.extend(compliance::phases(days));
    cases.extend(inactivity::check_ins(days));
    cases.extend(inactivity::daily_logs(days));
    cases.extend(places::new_york(days, 3));
    cases.push(places::spaced_over_the_change(days));
    cases.extend(places::moves(days));
    cases.extend(seeding::automations(days));
    cases.extend(seeding::clients(days));
    run(&world, days, cases, days.at(13, "10:20")).await;
}

#[tokio::test]
async fn days_end_at_local_midnight_when_clocks_are_set_back() {
    let world = World::start().await;
    let days = days_before_the_change(&world, 11).await;
    run(&world, days, places::new_york(days, 11), days.at(4, "15:20")).await;
}

#[tokio::test]
async fn after_three_days_without_sweeps_only_current_matches_are_emitted() {
    let world = World::start().await;
    let days = Days(world.now().await.date_naive() + TimeDelta::days(2));
    run(&world, days, places::outage(days), days.at(5, "12:20")).await;
}

#[tokio::test]
async fn a_match_ended_by_a_change_of_zone_or_programme_before_the_sweep_is_not_emitted() {
    let world = World::start().await;
    let days = Days(world.now().await.date_naive() + TimeDelta::days(2));
    run(&world, days, places::changes_before_the_sweep(days), days.at(1, "12:20")).await;
}
