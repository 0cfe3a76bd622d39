//! Golden file: the answers to a fixed walk over the routes, compared byte for byte with `golden/answers.txt`.
//!
//! `golden/requests.txt` is the walk. Routes that were added since are not in it. The file holds the answers of the
//! interface before the event feed, `external_id` and incremental reads, so the comparison shows that requests without
//! new parameters are answered as before. Members that were added since are in [`normal::ADDED`], values that were
//! changed in [`normal::CHANGED`]; both are undone before the comparison. After a change of an answer that is wanted,
//! write the file anew and read its diff:
//!
//! `GOLDEN=write cargo test -p behaviour --test behaviour -- golden`

mod normal;
mod scenario;

use std::collections::BTreeSet;

use domain::mode::Mode;
use edge::routes::{Routed, find, served};
use http::Method;

use crate::operations::golden::scenario::{Line, MARK, Scenario, lines};

const ANSWERS: &str = include_str!("golden/answers.txt");
const CHANGES: &str = include_str!("../../functions/docs/pages/changes.md");
const CHANGES_PAGE: &str = "functions/docs/pages/changes.md";
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/operations/golden/answers.txt");

/// Differences that a failure shows.
const MOST_SHOWN: usize = 20;

/// The requests whose answers differ, each with its first lines that differ.
fn differences(golden: &str, answered: &str) -> Vec<String> {
    // Each text ends with one part more, so that a longer one differs by a part.
    fn parts<'t>(text: &'t str, separator: &'t str) -> impl Iterator<Item = &'t str> {
        text.split(separator).chain(["(no more)"])
    }
    let answers = parts(golden, MARK).zip(parts(answered, MARK));
    let differing = answers.filter_map(|(golden, answered)| {
        let (expected, found) = parts(golden, "\n").zip(parts(answered, "\n")).find(|(a, b)| a != b)?;
        let request = golden.lines().next().unwrap_or_default();
        Some(format!("{request}\n  golden file: {expected}\n  answer now:  {found}"))
    });
    differing.collect()
}

#[tokio::test]
async fn an_answer_without_new_parameters_is_the_one_of_the_golden_file() {
    let answered = Scenario::new().await.walk().await;
    if std::env::var_os("GOLDEN").is_some_and(|mode| mode == "write") {
        std::fs::write(FILE, answered).unwrap();
        return;
    }
    let differences = differences(ANSWERS, &answered);
    assert!(
        answered == ANSWERS,
        "{} answers are not those of {FILE}. Undo the change, or see the header of this test.\n{}",
        differences.len(),
        differences.iter().take(MOST_SHOWN).map(String::as_str).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn a_route_of_integrators_is_in_the_walk_or_a_listed_addition() {
    let mut left: BTreeSet<String> =
        served(Mode::Live).filter(|route| route.path.starts_with("/v1/")).map(ToString::to_string).collect();
    for (number, line) in lines() {
        let Line::Request(request) = line else { continue };
        let path = request.path.split('?').next().unwrap();
        if let Routed::Known(route) = find(&Method::from_bytes(request.method.as_bytes()).unwrap(), path) {
            left.remove(&route.to_string());
        }
        assert!(
            ANSWERS.contains(&format!("\n{MARK}{number} {}\n", request.text)),
            "{}: write the file anew",
            request.text
        );
    }
    left.retain(|route| !CHANGES.contains(&format!("`{route}`")));
    assert!(left.is_empty(), "add a row to {CHANGES_PAGE} for {left:?}");
}
