//! Numbers in the guides. Every number of a guide stands in a phrase that is built from the code's constants, so a page
//! cannot state what the code does not do.
//!
//! Statuses and code are left out. Small counts in words, such as "the two headers", are no limits; with a unit they
//! have to be digits.

mod phrases;

use compare::assert_same;
use edge::Code;

use super::GUIDES;
use phrases::{PHRASES, guides, of_other_documents, read};

/// Words after which a number counts something, and is no status.
const UNITS: &str = "characters second seconds minute minutes hours days weeks requests events attempts secrets times levels \
                     keys endpoints mails KiB KB MB possible free";
/// Numbers in words, which have to be digits before a unit.
const WORDS: &str = "two three four five six seven eight nine ten twelve twenty hundred";

fn is_in(words: &str, word: &str) -> bool {
    words.split(' ').any(|listed| listed == word)
}

/// The text on one line, without marks of numbered lists. With or without blocks of code.
fn joined(text: &str, with_code: bool) -> String {
    let mut is_code = false;
    let mut words = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if with_code || !is_code {
            let line = line.trim_start();
            let mark = line.split_once(". ").filter(|(mark, _)| mark.bytes().all(|byte| byte.is_ascii_digit()));
            words.extend(mark.map_or(line, |(_, rest)| rest).split_whitespace());
        }
    }
    words.join(" ")
}

/// The text without inline code and targets of links.
fn without_code(text: &str) -> String {
    let prose: String = text.split('`').enumerate().map(|(i, part)| if i % 2 == 0 { part } else { "code" }).collect();
    let mut parts = prose.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + " " + part.split_once(')').map_or("", |(_, rest)| rest))
}

/// Each number in prose, with the words around it. Statuses are none.
fn numbers(text: &str) -> Vec<String> {
    let text = without_code(text);
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let bare = |i: usize| words.get(i).map_or("", |word| word.trim_matches(|c: char| c.is_ascii_punctuation()));
    let statuses: Vec<String> = Code::ALL.iter().map(|code| code.status().as_str().to_owned()).collect();
    let is_status = |i: usize| {
        let word = bare(i);
        let is_known =
            ["2xx", "4xx", "5xx", "200", "201", "202", "410"].contains(&word) || statuses.iter().any(|s| s == word);
        let is_value = words.get(i + 1) == Some(&"|") && i > 1 && words[i - 1] == "|" && !words[i - 2].ends_with('|');
        is_known
            && !is_value
            && !is_in(UNITS, bare(i + 1))
            && !["most", "than", "of"].contains(&bare(i.saturating_sub(1)))
    };
    let is_in_words = |i: usize| {
        is_in(WORDS, &bare(i).to_lowercase())
            && (is_in(UNITS, bare(i + 1)) || bare(i + 1) == "a" && is_in(UNITS, bare(i + 2)))
    };
    let has_digit = |i: usize| bare(i).bytes().any(|byte| byte.is_ascii_digit());
    let found = (0..words.len()).filter(|i| has_digit(*i) && !is_status(*i) || is_in_words(*i));
    found.map(|i| words[i.saturating_sub(4)..(i + 5).min(words.len())].join(" ")).collect()
}

#[test]
fn every_number_of_a_guide_is_the_codes() {
    let guides = guides();
    let served = GUIDES.iter().map(|guide| format!("functions/docs/pages/{}.md", guide.name));
    let checked = guides.iter().map(|(file, _)| file).filter(|file| file.starts_with("functions/docs/pages/"));
    assert_same(&format!("`guides` in {PHRASES}"), checked, served);
    let of_others = of_other_documents().into_iter().map(|(file, phrase)| (file.to_owned(), vec![phrase]));
    let mut faults = Vec::new();
    for (file, phrases) in guides.iter().cloned().chain(of_others) {
        let text = joined(&read(&file), true);
        let missing = phrases.iter().filter(|phrase| !text.contains(phrase.as_str()));
        faults.extend(
            missing.map(|phrase| {
                format!("{file} does not say `{phrase}`: write that, or correct the phrase in {PHRASES}")
            }),
        );
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    for (file, mut phrases) in guides {
        // A phrase may be a part of a longer one.
        phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
        let rest =
            phrases.iter().fold(joined(&read(&file), false), |text, phrase| text.replace(phrase.as_str(), " | "));
        faults.extend(numbers(&rest).into_iter().map(|around| {
            format!("{file}: no constant backs the number in `{around}`: add the phrase with its constant to {PHRASES}")
        }));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_number_counts_unless_it_is_a_status_or_code() {
    for (text, count) in [
        ("404 for this key, `300` in code, and [a link](/docs#300)", 0),
        ("answer 410. [Events](/docs/guides/events) has more", 0),
        ("| 404 | `not_found` |", 0),
        ("the two headers; 200 with a body", 0),
        ("at most 200 |", 1),
        ("| `limit` | 50 | 200 |", 2),
        ("200 characters", 1),
        ("Nine attempts, ten a minute", 2),
        ("27 hours (9 times)", 2),
    ] {
        assert_eq!(numbers(text).len(), count, "{text}");
    }
}
