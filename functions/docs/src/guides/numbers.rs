//! Numbers in Markdown. A mark behind a number names the constant that backs it, as in
//! `15 minutes<!-- LOGIN_LINK_LIFE -->`, so a page cannot state what the code does not do.
//!
//! A mark names a constant of `lib` or `functions`, as `module::NAME` if several have the name, or a value of
//! [`computed`]. The mark `fact` is for numbers of others, such as a port. Statuses and code need no mark. Small counts
//! in words, such as "the two headers", are no limits; with a unit they have to be digits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use domain::delivery::{CHAIN_RETENTION, DELIVERY_RETENTION};
use domain::rate_limit::{Limit, WINDOW_S};
use domain::retry::{CHAIN_HOURS, GAPS_S, MAX_ATTEMPTS};
use domain::wall_clock::TZ_DATABASE;
use edge::Code;
use regex_lite::{Captures, Regex};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Folders of Markdown, and those pages on which every number needs a mark. Other pages also state measured numbers.
const PAGES: [&str; 4] = ["functions/docs/pages", "functions/docs/reference", "infra/guides", "."];
const WHOLE: [&str; 3] = ["functions/docs/pages/", "functions/docs/reference/", "infra/guides/settings-api.md"];

/// Words after which a number counts something, and is no status.
const UNITS: &str = "characters second seconds minute minutes hours days weeks requests events attempts secrets times levels \
                     keys endpoints mails KiB KB MB possible free";
/// Numbers in words, which have to be digits before a unit.
const WORDS: &str = "two three four five six seven eight nine ten twelve twenty hundred";
/// Words before the number of a standard.
const STANDARDS: &str = "RFC OpenAPI Webhooks";

fn is_in(words: &str, word: &str) -> bool {
    words.split(' ').any(|listed| listed == word)
}

fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(ROOT).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files with this extension in a folder, and in its folders if `deep`.
fn files(folder: &str, extension: &str, deep: bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(Path::new(ROOT).join(folder)).unwrap().map(|entry| entry.unwrap());
    let inside = entries.flat_map(|entry| {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            if deep { files(&path, extension, deep) } else { Vec::new() }
        } else {
            vec![PathBuf::from(path.trim_start_matches("./"))]
        }
    });
    inside.filter(|path| path.extension().is_some_and(|own| own == extension)).collect()
}

/// Texts by the marks that name them.
fn values() -> BTreeMap<String, String> {
    let constant = Regex::new(r"const (\w+): ([^=\n]+) = ([^\n]+);\n").unwrap();
    let member = Regex::new(r"(\w+): (\d+)").unwrap();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in ["lib", "functions"].iter().flat_map(|folder| files(folder, "rs", true)) {
        let module = path.file_stem().unwrap().to_string_lossy().into_owned();
        for (_, [name, kind, value]) in constant.captures_iter(&read(&path)).map(|found| found.extract()) {
            let members = member.captures_iter(value).filter(|_| kind == "PageSize").map(|found| found.extract());
            let members = members.map(|(_, [member, value])| (format!("{name}.{member}"), value.to_owned()));
            for (name, value) in members.chain([(name.to_owned(), as_text(value))]) {
                found.entry(format!("{module}::{name}")).or_default().push(value.clone());
                found.entry(name).or_default().push(value);
            }
        }
    }
    // A name that several constants have stands for none of them.
    let unique =
        found.into_iter().filter(|(_, values)| values.len() == 1).map(|(name, values)| (name, values.concat()));
    unique.chain(computed().map(|(name, value)| (name.to_owned(), value))).collect()
}

/// `15 minutes` for `TimeDelta::minutes(15)`. Other code stays.
fn as_text(code: &str) -> String {
    let call = code.strip_suffix(')').and_then(|code| code.rsplit_once("::")?.1.split_once('('));
    call.map_or(code.to_owned(), |(unit, value)| format!("{value} {}", unit.replace("from_secs", "seconds")))
}

/// Values that are no literals in the code.
fn computed() -> [(&'static str, String); 13] {
    let spelled = |time_s: u32| match (time_s / 3_600, time_s % 3_600 / 60) {
        (0, 0) => format!("{time_s} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    };
    let gaps = GAPS_S.map(spelled);
    let (last, others) = gaps.split_last().expect("there is a retry");
    let per_minute = |limit: Limit| limit.per_minute().to_string();
    let template = read("template.yaml");
    let stated = |before: &str| {
        let (_, rest) = template.split_once(before).unwrap_or_else(|| panic!("template.yaml has no `{before}`"));
        rest.split(['\n', ')']).next().unwrap().to_owned()
    };
    [
        ("CHAIN_HOURS", format!("{CHAIN_HOURS} hours")),
        ("GAPS_S", format!("{} and {last}", others.join(", "))),
        ("MAX_ATTEMPTS", MAX_ATTEMPTS.to_string()),
        ("DELIVERY_RETENTION + CHAIN_RETENTION", format!("{} days", (DELIVERY_RETENTION + CHAIN_RETENTION).num_days())),
        ("TZ_DATABASE", TZ_DATABASE.to_owned()),
        ("Limit::Requests", per_minute(Limit::Requests)),
        ("Limit::Requests + 1", (Limit::Requests.per_minute() + 1).to_string()),
        ("Limit::Requests / WINDOW_S - 1", (Limit::Requests.per_minute() / WINDOW_S - 1).to_string()),
        ("Limit::SettingsRequests", per_minute(Limit::SettingsRequests)),
        ("Limit::LoginLinks", per_minute(Limit::LoginLinks)),
        ("Limit::TestEvents", per_minute(Limit::TestEvents)),
        ("WelcomeMailsPerDay", stated("WelcomeMailsPerDay:\n    Type: Number\n    Default: ")),
        ("Schedule", stated("Schedule: rate(")),
    ]
}

/// A number in seconds or bytes if it has a unit of time or size: `15 minutes`, `64 * 1024`, `2,048`.
fn quantity(text: &str) -> Option<u64> {
    let factor = |unit: &str| match unit.trim_end_matches('s') {
        "second" => Some(1),
        "minute" => Some(60),
        "hour" => Some(3_600),
        "day" => Some(86_400),
        "KB" => Some(1_000),
        "KiB" => Some(1_024),
        _ => None,
    };
    let with_unit = text.rsplit_once(' ').and_then(|(number, unit)| Some((number, factor(unit)?)));
    let (number, factor) = with_unit.unwrap_or((text, 1));
    let parts = number.split(" * ").map(|part| part.trim_end_matches(".0").replace([',', '_'], "").parse::<u64>().ok());
    Some(parts.product::<Option<u64>>()? * factor)
}

/// The text without numbers that have a mark. A mark that does not hold is a fault.
fn without_backed(text: &str, values: &BTreeMap<String, String>, faults: &mut Vec<String>) -> String {
    let is_number = |value: &String| quantity(value).is_some();
    // Some values are lists of numbers or names.
    let texts = values.iter().filter(|(_, value)| !is_number(value));
    let rest = texts.fold(text.to_owned(), |rest, (name, text)| rest.replace(&format!("{text}<!-- {name} -->"), ""));
    let marked = Regex::new(r"(\d[\d,]*)(?:st)?( [[:alpha:]%]+)?(`?)<!-- ([^>]+) -->").unwrap();
    let rest = marked.replace_all(&rest, |found: &Captures<'_>| {
        let (number, mark) = (&found[1], &found[4]);
        let stated = found.get(2).and_then(|unit| quantity(&format!("{number}{}", unit.as_str())));
        let value = values.get(mark).and_then(|value| quantity(value));
        if mark != "fact" && (value.is_none() || value != stated.or(quantity(number))) {
            let wanted =
                values.get(mark).map_or("backed by one constant (`module::NAME` if there are more)", String::as_str);
            faults.push(format!("`{}` is not {wanted}", &found[0]));
        }
        found[3].to_owned()
    });
    faults.extend(
        rest.split_once("<!-- ").map(|(_, mark)| format!("the mark {mark:.40} follows no number of its value")),
    );
    rest.into_owned()
}

/// The text on one line, without blocks of code and marks of numbered lists.
fn joined(text: &str) -> String {
    let prose = text.split("```").step_by(2).flat_map(str::lines).map(str::trim_start);
    let without_mark = |line: &'_ str| match line.split_once(". ") {
        Some((mark, rest)) if mark.bytes().all(|byte| byte.is_ascii_digit()) => rest.to_owned(),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = prose.map(without_mark).collect();
    lines.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
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
    let is_standard = |i: usize| i > 0 && is_in(STANDARDS, bare(i - 1));
    let is_lower_bound = |i: usize| {
        let before = bare(i.saturating_sub(1));
        bare(i + 1) == "to" && is_in("0 1", bare(i)) || bare(i) == "0" && is_in("above not", before)
    };
    let is_in_words = |i: usize| {
        is_in(WORDS, &bare(i).to_lowercase())
            && (is_in(UNITS, bare(i + 1)) || bare(i + 1) == "a" && is_in(UNITS, bare(i + 2)))
    };
    // A word such as SHA-256 is a name.
    let is_number = |i: usize| bare(i).starts_with(|c: char| c.is_ascii_digit());
    let is_none = |i: usize| is_status(i) || is_standard(i) || is_lower_bound(i);
    let found = (0..words.len()).filter(|i| is_number(*i) && !is_none(*i) || is_in_words(*i));
    found.map(|i| words[i.saturating_sub(4)..(i + 5).min(words.len())].join(" ")).collect()
}

#[test]
fn every_number_of_a_guide_is_the_codes() {
    let values = values();
    let mut faults = Vec::new();
    for page in PAGES.iter().flat_map(|folder| files(folder, "md", false)) {
        let page = page.to_string_lossy();
        let mut own = Vec::new();
        let rest = without_backed(&joined(&read(&*page)), &values, &mut own);
        if WHOLE.iter().any(|whole| page.starts_with(whole)) {
            own.extend(numbers(&rest).into_iter().map(|around| format!("no mark backs the number in `{around}`")));
        }
        faults.extend(own.into_iter().map(|fault| format!("{page}: {fault}")));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_mark_holds_for_its_value_in_any_unit() {
    let values = [("HOUR", "1 hours"), ("KIB", "64 * 1024"), ("MANY", "2_048"), ("GAPS", "5 s and 1 min")];
    let values = BTreeMap::from(values.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for (text, holds) in [
        ("at most 1 hour<!-- HOUR -->, or", true),
        ("(60 minutes<!-- HOUR -->)", true),
        ("(`Retry-After: 3600`<!-- HOUR -->)", true),
        ("up to 64 KiB<!-- KIB --> and 2,048<!-- MANY --> characters", true),
        ("2048 characters<!-- MANY -->.", true),
        ("after 5 s and 1 min<!-- GAPS -->", true),
        ("port 9000<!-- fact -->", true),
        ("1 minute<!-- HOUR -->", false),
        ("64 KB<!-- KIB -->", false),
        ("after 5 s<!-- GAPS -->", false),
        ("2048<!-- OTHER -->", false),
    ] {
        let mut faults = Vec::new();
        let left = without_backed(text, &values, &mut faults);
        assert_eq!(faults.is_empty(), holds, "{text}");
        assert!(numbers(&left).is_empty(), "{left}");
    }
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
