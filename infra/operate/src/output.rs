//! Printing: JSON for programs, tables for people. A table has what the JSON has. Control characters are
//! escaped, so that no stored text moves the cursor or hides a line.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::failure::{Code, Failure, masked};

/// The answer of a command, as JSON whose members stand in the order of their type.
pub(crate) struct Answer(String);

impl Answer {
    pub(crate) fn of(answer: &impl Serialize) -> Result<Self, Failure> {
        serde_json::to_string(answer).map(Self).map_err(|error| Failure::refused(format!("the answer: {error}")))
    }
}

/// Prints an answer on stdout.
pub(crate) fn print(json: bool, Answer(answer): &Answer) -> Result<(), Failure> {
    let text = if json { format!("{}\n", escaped(answer)) } else { table(answer) };
    let printed = std::io::stdout().write_all(text.as_bytes());
    printed.map_err(|error| {
        Failure::unreachable(format!("the command has ended well, but its answer could not be written: {error}"))
    })
}

/// Prints a failure: on stdout as JSON, else on stderr as a line.
pub(crate) fn print_failure(json: bool, failure: &Failure) -> ExitCode {
    let text = serde_json::to_string(failure).unwrap_or_default();
    if !json || writeln!(std::io::stdout(), "{}", escaped(&text)).is_err() {
        say(&failure.error);
    }
    ExitCode::from(if failure.code == Code::Usage { 2 } else { 1 })
}

/// Says something to the person at the terminal, on stderr.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "operate: {}", escaped(&masked(text)));
}

/// Text in which control characters, and characters that change the direction of text, are escaped.
fn escaped(text: &str) -> String {
    let is_control = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_control(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
        out
    })
}

/// JSON whose objects keep the order of their members.
enum Shown {
    Scalar(String),
    List(Vec<Shown>),
    Object(Vec<(String, Shown)>),
}

/// A row of a table: an object of a list, or one that has a name.
struct Row<'a> {
    name: Option<&'a str>,
    value: &'a Shown,
}

/// Renders JSON: members under each other, lists of objects as tables.
fn table(json: &str) -> String {
    let mut out = String::new();
    match serde_json::from_str(json) {
        Ok(Shown::Object(members)) => object(&mut out, &members),
        Ok(other) => out.push_str(&format!("{}\n", cell(&other))),
        Err(_) => out.push_str(json),
    }
    out
}

/// Renders the members of an object. Those that are lists of objects, or objects by name, follow as tables.
fn object(out: &mut String, members: &[(String, Shown)]) {
    let mut flat = Vec::new();
    let mut lists = Vec::new();
    flatten("", members, &mut flat, &mut lists);
    let width = flat.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    for (name, value) in flat {
        out.push_str(&format!("{name:width$}  {value}\n"));
    }
    for (name, rows) in lists {
        out.push_str(&format!("{}{name}: {}\n", if out.is_empty() { "" } else { "\n" }, rows.len()));
        table_of(out, &rows);
    }
}

fn flatten<'a>(
    prefix: &str,
    members: &'a [(String, Shown)],
    flat: &mut Vec<(String, String)>,
    lists: &mut Vec<(String, Vec<Row<'a>>)>,
) {
    for (name, value) in members {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Shown::Object(named) if named.iter().all(|(_, value)| matches!(value, Shown::Object(_))) => {
                lists.push((name, named.iter().map(|(name, value)| Row { name: Some(name), value }).collect()));
            }
            Shown::Object(members) => flatten(&name, members, flat, lists),
            Shown::List(rows) if !rows.iter().all(|row| matches!(row, Shown::Scalar(_))) || rows.is_empty() => {
                lists.push((name, rows.iter().map(|value| Row { name: None, value }).collect()));
            }
            Shown::List(_) | Shown::Scalar(_) => flat.push((name, cell(value))),
        }
    }
}

/// Renders rows under the names of their members.
fn table_of(out: &mut String, rows: &[Row<'_>]) {
    let Some(Row { name, value: Shown::Object(first) }) = rows.first() else { return };
    let names: Vec<String> =
        name.iter().map(|_| "name".to_owned()).chain(first.iter().map(|(name, _)| name.clone())).collect();
    let cells = rows.iter().map(|row| {
        let own = row.name.iter().map(|name| escaped(name));
        match row.value {
            Shown::Object(members) => own.chain(members.iter().map(|(_, value)| cell(value))).collect(),
            other => own.chain([cell(other)]).collect(),
        }
    });
    let columns = names.len();
    let lines: Vec<Vec<String>> = std::iter::once(names).chain(cells).collect();
    let width_of =
        |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|text| text.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width_of(column).unwrap_or_default()).collect();
    for line in lines {
        let padded = line.iter().zip(&widths).map(|(text, width)| format!("{text:width$}"));
        out.push_str("  ");
        out.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
}

fn cell(value: &Shown) -> String {
    match value {
        Shown::Scalar(text) => escaped(text),
        Shown::List(values) => values.iter().map(cell).collect::<Vec<_>>().join(", "),
        Shown::Object(members) => {
            members.iter().map(|(name, value)| format!("{name}={}", cell(value))).collect::<Vec<_>>().join(" ")
        }
    }
}

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShownVisitor)
    }
}

struct ShownVisitor;

impl<'de> Visitor<'de> for ShownVisitor {
    type Value = Shown;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Shown, E> {
        Ok(Shown::Scalar(if value { "yes" } else { "no" }.to_owned()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Shown, E> {
        Ok(Shown::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Shown, E> {
        Ok(Shown::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Shown, E> {
        Ok(Shown::Scalar(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Shown, E> {
        Ok(Shown::Scalar(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Shown, E> {
        Ok(Shown::Scalar("-".to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Shown, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(Shown::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Shown, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(Shown::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_what_the_json_has_in_its_order() {
        let json = r#"{"coach_id":"ada","clients":{"stored":12,"active":9},"crm":true,
            "endpoints":[{"id":"we_1","host":"a.example","since":null},{"id":"we_22","host":"b.example","since":"x"}],
            "dead":[],"queues":{"a.fifo":{"visible":1},"b":{"visible":22}}}"#;
        let shown = "coach_id        ada\nclients.stored  12\nclients.active  9\ncrm             yes\n\
            \nendpoints: 2\n  id     host       since\n  we_1   a.example  -\n  we_22  b.example  x\n\ndead: 0\n\
            \nqueues: 2\n  name    visible\n  a.fifo  1\n  b       22\n";
        assert_eq!(table(json), shown);
    }

    #[test]
    fn no_stored_text_reaches_the_terminal_as_a_control() {
        assert_eq!(table("{\"reason\":\"a\\u001b[2Jb\\u202e\\u0000\"}"), "reason  a\\u001b[2Jb\\u202e\\u0000\n");
        assert_eq!(escaped("{\"a\":\"\u{9b}\u{202e}\"}"), "{\"a\":\"\\u009b\\u202e\"}");
    }
}
