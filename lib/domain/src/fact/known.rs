//! The known fields of each fact. Every other field is dropped before the fact is parsed.

use serde_json::{Map, Value};

use crate::fields::Invalid;
use crate::pieces::{Piece, Pieces};
use crate::time::parse_date;

/// The shape of a field's value. Names are separated by blanks.
#[derive(Clone, Copy)]
enum Shape {
    Scalar,
    /// An object with these scalars.
    Object(&'static str),
    /// A list of objects with these scalars.
    List(&'static str),
    /// An object with these lists of pairs of scalars.
    Pairs(&'static str),
    /// An object with lists of pairs of scalars by date.
    PairsByDate,
    /// Numbers by name. They are evaluated and dropped, and never reach a dead letter.
    Scores,
}

use Shape::{List, Object, Pairs, PairsByDate, Scalar, Scores};

/// The scalars of every fact.
const COMMON: &str = "id occurred_at backfill";
/// The error for an unreadable field.
const UNREADABLE_RULE: &str = "must be JSON that can be read: whole characters, and numbers that are not immense";

/// The fields of a fact, except the common ones: its scalars, and the other fields by name.
type FactFields = (&'static str, &'static [(&'static str, Shape)]);

fn fields_of(detail_type: &str) -> FactFields {
    match detail_type {
        "workspace.saved" => (
            "coach_id email name team_id canonical_host time_zone country",
            &[
                ("plan", Object("client_cap")),
                ("entitlements", Object("partner_api pro_crm gym")),
                ("crm", Object("pipeline_id initial_stage")),
            ],
        ),
        "team.saved" => ("team_id client_cap", &[]),
        "client.saved" => (
            "client_id coach_id email full_name phone goals health_notes height_in weight_lbs is_active current_phase \
             phase_started_on programme_id created_at origin",
            &[],
        ),
        "contact.saved" => {
            ("contact_id coach_id name email phone do_not_contact", &[("marketing", Object("email sms"))])
        }
        "contact.merged" => ("coach_id contact_id merged_into", &[]),
        "calendar.saved" => (
            "calendar_id coach_id name time_zone price_cents currency booking_url active slot_minutes \
             slot_interval_minutes buffer_before_minutes buffer_after_minutes min_notice_minutes horizon_days",
            &[("weekly", Pairs("mon tue wed thu fri sat sun")), ("overrides", PairsByDate)],
        ),
        "calendar_event.saved" => ("event_id coach_id calendar_id lead_id starts_at ends_at status", &[]),
        "pipeline.saved" => ("pipeline_id coach_id name", &[("stages", List("id name kind"))]),
        "opportunity.saved" => {
            ("opportunity_id coach_id contact_id name value_cents pipeline_id stage lost_reason", &[])
        }
        "workflow.saved" => ("workflow_id coach_id name trigger active activated_at updated_at", &[]),
        "programme.saved" => ("programme_id coach_id", &[("phases", List("name min_days min_compliance_pct"))]),
        "automation.saved" => (
            "automation_id coach_id name active",
            &[
                ("trigger", Object("event threshold days window_days question_id system")),
                ("steps", List("kind endpoint_id")),
            ],
        ),
        "automation.deleted" => ("automation_id coach_id", &[]),
        "phase.advanced" => ("client_id from_phase to_phase advanced_at", &[]),
        "dose_schedule.saved" => ("client_id", &[("doses", List("dose_id per_day from until"))]),
        "dose.logged" => ("client_id dose_log_id dose_id date", &[]),
        "dose_log.deleted" => ("client_id dose_log_id", &[]),
        "daily_log.saved" | "daily_log.deleted" => ("client_id date", &[]),
        "check_in.submitted" => ("client_id check_in_id submitted_at", &[("scores", Scores), ("grades", Scores)]),
        "check_in.reviewed" => ("client_id check_in_id reviewed_at", &[]),
        "check_in.deleted" => ("client_id check_in_id", &[]),
        "message.received" => ("client_id message_id received_at", &[]),
        "client.erased" => ("client_id", &[]),
        _ => ("", &[]),
    }
}

fn shape_of(detail_type: &str, field: &str) -> Option<Shape> {
    let (scalars, others) = fields_of(detail_type);
    let other = others.iter().find(|(name, _)| *name == field).map(|(_, shape)| *shape);
    other.or_else(|| (names(COMMON, field) || names(scalars, field)).then_some(Scalar))
}

fn names(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

/// Returns true for the name of a fact.
pub fn is_known(detail_type: &str) -> bool {
    !fields_of(detail_type).0.is_empty()
}

/// The known fields of a fact, read from text that may contain junk.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// An object with each known field that is readable.
    pub fields: Value,
    /// The first known field that is unreadable: the fact must not be stored without it.
    pub unreadable: Option<Invalid>,
}

impl Known {
    /// Reads the known fields of a fact of that name. Junk in other fields makes no difference.
    pub fn read(detail_type: &str, text: &str) -> Self {
        let mut reader = Reader::default();
        let mut fields = Map::new();
        let members = Pieces::of_object(text).unwrap_or_default();
        for Piece { name, value } in members.pieces {
            let Ok(name) = serde_json::from_str::<String>(name) else { continue };
            if let Some(shape) = shape_of(detail_type, &name)
                && let Some(value) = reader.field(shape, &name, value)
            {
                fields.insert(name, value);
            }
        }
        if !members.is_whole {
            reader.refuse("Detail", "must be one whole JSON object");
        }
        Self { fields: Value::Object(fields), unreadable: reader.unreadable }
    }
}

/// Returns the fields of a fact for a dead letter: without scores and grades, which are evaluated and dropped.
pub fn without_scores(detail_type: &str, fields: &Value) -> Value {
    let is_scores = |name: &str| matches!(shape_of(detail_type, name), Some(Scores));
    let members = fields.as_object().into_iter().flatten().filter(|(name, _)| !is_scores(name));
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Reads fields, and records the first unreadable one.
#[derive(Default)]
struct Reader {
    unreadable: Option<Invalid>,
}

impl Reader {
    /// Returns the part of a field's text that fits the shape. `None`: nothing fits.
    fn field(&mut self, shape: Shape, path: &str, text: &str) -> Option<Value> {
        match (shape, text.as_bytes().first()) {
            (Object(known), Some(b'{')) => Some(Value::Object(self.scalars(known, path, text))),
            (List(known), Some(b'[')) => {
                // An item that is not an object becomes null, which the parser refuses.
                let items = self.pieces(Pieces::of_list(text), path).into_iter();
                let is_object = |item: &Piece<'_>| item.value.starts_with('{');
                let object =
                    |item| if is_object(&item) { self.scalars(known, path, item.value).into() } else { Value::Null };
                Some(Value::Array(items.map(object).collect()))
            }
            (Pairs(known), Some(b'{')) => {
                let members = self.members(path, text).into_iter().filter(|(name, _)| names(known, name));
                Some(Value::Object(members.map(|(name, list)| (name, self.pairs(path, list))).collect()))
            }
            (PairsByDate, Some(b'{')) => {
                let members = self.all_members(path, text);
                // A name that is not a date could contain anything.
                let dated = members.iter().all(|(name, _)| parse_date(name).is_some());
                let kept = |(name, list)| (name, self.pairs(path, list));
                Some(if dated { Value::Object(members.into_iter().map(kept).collect()) } else { Value::Null })
            }
            (Scores, Some(b'{')) => {
                let members = self.all_members(path, text).into_iter();
                Some(Value::Object(members.map(|(name, number)| (name, self.number(path, number))).collect()))
            }
            (List(_) | Scores, _) | (Object(_) | Pairs(_) | PairsByDate, Some(b'[')) => None,
            (Scalar | Object(_) | Pairs(_) | PairsByDate, _) => self.scalar(path, text),
        }
    }

    /// Reads a scalar. Objects and lists are refused unread.
    fn scalar(&mut self, path: &str, text: &str) -> Option<Value> {
        if text.starts_with(['{', '[']) {
            self.refuse(path, "must not be an object or a list");
            return None;
        }
        self.value(path, text)
    }

    fn value(&mut self, path: &str, text: &str) -> Option<Value> {
        let read = serde_json::from_str(text);
        if read.is_err() {
            self.refuse(path, UNREADABLE_RULE);
        }
        read.ok()
    }

    fn scalars(&mut self, known: &str, path: &str, text: &str) -> Map<String, Value> {
        let members = self.members(path, text).into_iter().filter(|(name, _)| names(known, name));
        let read = members.filter_map(|(name, text)| {
            let value = self.scalar(&format!("{path}.{name}"), text)?;
            Some((name, value))
        });
        read.collect()
    }

    /// Reads a list of pairs of scalars. Anything else becomes null, which the parser refuses.
    fn pairs(&mut self, path: &str, text: &str) -> Value {
        if !text.starts_with('[') {
            return Value::Null;
        }
        let items = self.pieces(Pieces::of_list(text), path).into_iter();
        let pair = |item: Piece<'_>| match self.pieces(Pieces::of_list(item.value), path).as_slice() {
            [from, to] if [from, to].iter().all(|end| !end.value.starts_with(['{', '['])) => {
                [from, to].iter().map(|end| self.value(path, end.value).unwrap_or_default()).collect()
            }
            _ => Value::Null,
        };
        Value::Array(items.map(pair).collect())
    }

    /// Reads a score or grade. Anything else, such as a text, becomes null, which the parser refuses.
    fn number(&mut self, path: &str, text: &str) -> Value {
        if text.starts_with(['{', '[', '"']) {
            return Value::Null;
        }
        self.value(path, text).filter(Value::is_number).unwrap_or_default()
    }

    /// Returns the members of a field with readable names. An unreadable name is not a known one.
    fn members<'a>(&mut self, path: &str, text: &'a str) -> Vec<(String, &'a str)> {
        let members = self.pieces(Pieces::of_object(text), path).into_iter();
        members.filter_map(|Piece { name, value }| Some((serde_json::from_str(name).ok()?, value))).collect()
    }

    /// Returns the members of a field in which every name counts.
    fn all_members<'a>(&mut self, path: &str, text: &'a str) -> Vec<(String, &'a str)> {
        let members = self.members(path, text);
        if Pieces::of_object(text).is_some_and(|all| all.pieces.len() > members.len()) {
            self.refuse(path, UNREADABLE_RULE);
        }
        members
    }

    fn pieces<'a>(&mut self, pieces: Option<Pieces<'a>>, path: &str) -> Vec<Piece<'a>> {
        let Some(Pieces { pieces, is_whole }) = pieces else { return Vec::new() };
        if !is_whole {
            self.refuse(path, UNREADABLE_RULE);
        }
        pieces
    }

    fn refuse(&mut self, path: &str, rule: &str) {
        self.unreadable.get_or_insert_with(|| Invalid::field(path, rule));
    }
}

/// Returns the known fields of a fact.
#[cfg(test)]
pub(crate) fn cleaned(detail_type: &str, detail: &Value) -> Value {
    Known::read(detail_type, &detail.to_string()).fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn cleaning_keeps_known_scalars_and_nothing_else() {
        let fact = json!({"id": "f1", "full_name": "Ada", "diary": "SECRET", "goals": {"nested": "SECRET"}});
        let clean = cleaned("client.saved", &fact);
        assert_eq!(clean, json!({"id": "f1", "full_name": "Ada"}));
        let workspace = json!({"id": "f", "plan": {"client_cap": 1, "card": "SECRET"}, "crm": null});
        assert_eq!(cleaned("workspace.saved", &workspace), json!({"id": "f", "plan": {"client_cap": 1}, "crm": null}));
        assert_eq!(cleaned("no.such", &json!({"id": "f", "x": "SECRET"})), json!({"id": "f"}));
        assert_eq!(cleaned("client.saved", &json!(["SECRET"])), json!({}));
    }

    #[test]
    fn cleaning_keeps_pairs_of_times_by_day_and_date() {
        let calendar = json!({
            "weekly": {
                "mon": [["09:00", "10:00"], ["09:00", "10:00", "SECRET"], ["09:00", {"x": "SECRET"}], {"x": "SECRET"}],
                "tue": "SECRET", "wed": [], "holiday": [["SECRET", "SECRET"]]
            },
            "overrides": {"2026-12-24": [["09:00", "10:00"], ["SECRET"]], "2026-12-25": {"x": "SECRET"}},
            "notes": "SECRET"
        });
        let clean = json!({
            "weekly": {"mon": [["09:00", "10:00"], null, null, null], "tue": null, "wed": []},
            "overrides": {"2026-12-24": [["09:00", "10:00"], null], "2026-12-25": null}
        });
        assert_eq!(cleaned("calendar.saved", &calendar), clean);
        let undated = json!({"overrides": {"2026-12-24": [], "SECRET": []}, "weekly": [["SECRET"]]});
        assert_eq!(cleaned("calendar.saved", &undated), json!({"overrides": null}));
        let event = json!({"event_id": "e", "lead_id": null, "title": "SECRET", "status": {"x": "SECRET"}});
        assert_eq!(cleaned("calendar_event.saved", &event), json!({"event_id": "e", "lead_id": null}));
    }

    #[test]
    fn cleaning_reaches_into_lists_and_scores() {
        let programme =
            json!({"phases": [{"name": "Base", "min_days": 7, "notes": "SECRET", "name2": ["SECRET"]}, "SECRET"]});
        assert_eq!(cleaned("programme.saved", &programme), json!({"phases": [{"name": "Base", "min_days": 7}, null]}));
        let check_in = json!({"check_in_id": "k", "scores": {"q1": 3, "q2": "SECRET"}, "grades": ["SECRET"], "answers": {"q1": "SECRET"}});
        let clean = cleaned("check_in.submitted", &check_in);
        assert_eq!(clean, json!({"check_in_id": "k", "scores": {"q1": 3, "q2": null}}));
        assert_eq!(without_scores("check_in.submitted", &clean), json!({"check_in_id": "k"}));
    }

    /// Values that a strict parser refuses, or that are no known data.
    const JUNK: [&str; 16] = [
        r#""x\ud83d""#,
        r#""\ude00x""#,
        r#""\ude00\ud83d""#,
        r#""\ud83d\u0041""#,
        r#""\u12""#,
        r#""\x41""#,
        "\"a\nb\"",
        "\"a\u{1}b\"",
        "1e999",
        "-1e999",
        "NaN",
        "-Infinity",
        "01",
        "+1",
        "undefined",
        r#""say "hi" now""#,
    ];

    fn nested(depth: usize) -> String {
        format!("{}{}", "[".repeat(depth), "]".repeat(depth))
    }

    /// Renders an object with these members.
    fn object(members: &[(&str, &str)]) -> String {
        let members: Vec<String> = members.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        format!("{{{}}}", members.join(","))
    }

    #[test]
    fn junk_in_an_unknown_field_is_dropped_with_it() {
        let plain = json!({"id": "f1", "client_id": "c1", "date": "2026-01-01"});
        let text = |name: &str, junk: &str| {
            object(&[
                (r#""id""#, r#""f1""#),
                (name, junk),
                (r#""client_id""#, r#""c1""#),
                (r#""date""#, r#""2026-01-01""#),
            ])
        };
        let deep = [130, 100_000].map(nested);
        for junk in JUNK.iter().copied().chain(deep.iter().map(String::as_str)) {
            for name in [r#""bio""#, r#""bio\ud83d""#, r#""\u0000""#] {
                for value in [junk.to_owned(), format!("[{junk}]"), object(&[(r#""q1""#, junk)])] {
                    let known = Known::read("daily_log.saved", &text(name, &value));
                    assert_eq!(known, Known { fields: plain.clone(), unreadable: None }, "{name}: {value:.60}");
                }
            }
        }
    }

    #[test]
    fn junk_in_a_known_field_is_reported_and_the_others_stay() {
        for (detail_type, field, value, path) in [
            ("client.saved", "goals", "JUNK", "goals"),
            ("client.saved", "id", "JUNK", "id"),
            ("client.saved", "backfill", "JUNK", "backfill"),
            ("workspace.saved", "plan", r#"{"client_cap":JUNK}"#, "plan.client_cap"),
            ("programme.saved", "phases", r#"[{"name":JUNK}]"#, "phases.name"),
            ("automation.saved", "trigger", r#"{"threshold":JUNK}"#, "trigger.threshold"),
            ("calendar.saved", "weekly", r#"{"mon":[["09:00",JUNK]]}"#, "weekly"),
            ("calendar.saved", "overrides", r#"{"2026-12-24":[[JUNK,1]]}"#, "overrides"),
            ("check_in.submitted", "scores", r#"{"q":JUNK}"#, "scores"),
        ] {
            // A text among numbers becomes null, which the parser refuses.
            for junk in JUNK.into_iter().filter(|junk| path != "scores" || !junk.starts_with('"')) {
                let name = format!("\"{field}\"");
                let members = [
                    (r#""occurred_at""#, r#""now""#),
                    (&name, &value.replace("JUNK", junk)),
                    (r#""coach_id""#, r#""ada""#),
                ];
                let Known { fields, unreadable } = Known::read(detail_type, &object(&members));
                assert_eq!(unreadable.and_then(|why| why.field).as_deref(), Some(path), "{junk}");
                assert_eq!(fields["occurred_at"], "now", "{junk}");
            }
        }
    }

    #[test]
    fn a_value_too_deep_or_of_another_kind_for_a_field_that_counts_is_named() {
        for value in [nested(1), nested(130), nested(100_000), r#"{"x":1}"#.to_owned()] {
            for (detail_type, field) in [("client.saved", "goals"), ("client.erased", "backfill")] {
                let name = format!("\"{field}\"");
                let known = Known::read(detail_type, &object(&[(&name, &value), (r#""id""#, r#""f1""#)]));
                assert_eq!(known.unreadable.and_then(|why| why.field).as_deref(), Some(field), "{value:.60}");
                assert_eq!(known.fields, json!({"id": "f1"}));
            }
        }
    }

    #[test]
    fn a_name_that_cannot_be_read_is_refused_where_every_name_counts() {
        for (detail_type, field) in [("check_in.submitted", "grades"), ("calendar.saved", "overrides")] {
            let text = format!(r#"{{"{field}":{{"x\ud83d":4}}}}"#);
            let known = Known::read(detail_type, &text);
            assert_eq!(known.unreadable.and_then(|why| why.field).as_deref(), Some(field));
        }
    }

    #[test]
    fn an_incomplete_object_is_refused_with_its_readable_fields() {
        for (text, fields) in [
            ("", json!({})),
            ("[1]", json!({})),
            (r#"{"client_id":"c1","bio":"5" tall","date":"2026-01-01"}"#, json!({"client_id": "c1"})),
            (r#"{"client_id":"c1","bio":"2026-"#, json!({"client_id": "c1"})),
            (r#"{"client_id":"c1"} "date""#, json!({"client_id": "c1"})),
            (r#"{"client_id":"c1","bio":1 "backfill":true}"#, json!({"client_id": "c1"})),
        ] {
            let known = Known::read("daily_log.saved", text);
            assert_eq!(known.fields, fields, "{text}");
            assert_eq!(known.unreadable.unwrap().message, "Detail must be one whole JSON object", "{text}");
        }
    }

    /// Generates text of JSON's form whose leaves may be anything that fits between quotes, digits or letters.
    fn junk() -> impl Strategy<Value = String> {
        let text = prop::collection::vec(
            prop_oneof![
                any::<char>().prop_map(|c| if c == '"' || c == '\\' { format!("\\{c}") } else { c.to_string() }),
                any::<u16>().prop_map(|unit| format!("\\u{unit:04x}")),
            ],
            0..20,
        );
        let text = text.prop_map(|parts| format!("\"{}\"", parts.concat())).boxed();
        let number = (any::<bool>(), any::<u128>(), any::<i16>());
        let number = number.prop_map(|(minus, digits, ten)| format!("{}{digits}e{ten}", if minus { "-" } else { "" }));
        let word = prop::sample::select(vec!["null", "true", "NaN", "Infinity", "undefined", "0x1f", "07"]);
        let leaf = prop_oneof![text.clone(), number, word.prop_map(str::to_owned), (0_usize..500).prop_map(nested)];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            let member = (text.clone(), inner.clone()).prop_map(|(name, value)| format!("{name}:{value}"));
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(","))),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_unknown_field_never_affects_the_others(junk in junk(), at in 0_usize..4) {
            let mut members = vec![
                (r#""id""#, r#""f1""#),
                (r#""check_in_id""#, r#""k""#),
                (r#""scores""#, r#"{"sleep":4}"#),
            ];
            let plain = Known::read("check_in.submitted", &object(&members));
            prop_assert_eq!(&plain.unreadable, &None);
            members.insert(at, (r#""answers""#, &junk));
            prop_assert_eq!(Known::read("check_in.submitted", &object(&members)), plain);
        }
    }
}
