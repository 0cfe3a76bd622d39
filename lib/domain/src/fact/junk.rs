//! Tests of facts with junk: JSON that a strict reader refuses, or members that no struct names.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Fact, known_fields, lenient, without_scores};

#[test]
fn cleaning_keeps_known_fields_and_nothing_else() {
    let fact =
        json!({"id": "f1", "full_name": "Ada", "diary": "SECRET", "goals": {"nested": "SECRET"}, "is_active": "x"});
    let clean = known_fields("client.saved", &fact);
    assert_eq!(clean, json!({"id": "f1", "full_name": "Ada", "is_active": "x"}));
    let workspace = json!({"id": "f", "plan": {"client_cap": 1, "card": "SECRET"}, "crm": null});
    assert_eq!(known_fields("workspace.saved", &workspace), json!({"id": "f", "plan": {"client_cap": 1}, "crm": null}));
    assert_eq!(known_fields("no.such", &json!({"id": "f", "x": "SECRET"})), json!({"id": "f"}));
    assert_eq!(known_fields("client.saved", &json!(["SECRET"])), json!({}));
    assert_eq!(known_fields("client.erased", &json!({"client_id": "c", "x": ["SECRET"]})), json!({"client_id": "c"}));
}

#[test]
fn cleaning_keeps_pairs_of_times_by_day_and_date() {
    let calendar = json!({
        "weekly": {"mon": [["09:00", "10:00"]], "wed": [], "holiday": [["SECRET", "SECRET"]]},
        "overrides": {"2026-12-24": [["09:00", "10:00"]], "2026-12-25": []},
        "notes": "SECRET"
    });
    let clean = json!({
        "weekly": {"mon": [["09:00", "10:00"]], "wed": []},
        "overrides": {"2026-12-24": [["09:00", "10:00"]], "2026-12-25": []}
    });
    assert_eq!(known_fields("calendar.saved", &calendar), clean);
    for wrong in [
        json!({"overrides": {"2026-12-24": [], "SECRET": []}}),
        json!({"overrides": {"2026-12-24": [["SECRET"]]}}),
        json!({"overrides": {"2026-12-24": {"x": "SECRET"}}}),
        json!({"weekly": {"mon": [["09:00", "10:00", "SECRET"]]}}),
        json!({"weekly": {"mon": [["09:00", {"x": "SECRET"}]]}}),
        json!({"weekly": {"tue": "SECRET"}}),
        json!({"weekly": [["SECRET"]]}),
    ] {
        assert_eq!(known_fields("calendar.saved", &wrong), json!({}), "{wrong}");
    }
    let event = json!({"event_id": "e", "lead_id": null, "title": "SECRET", "status": {"x": "SECRET"}});
    assert_eq!(known_fields("calendar_event.saved", &event), json!({"event_id": "e", "lead_id": null}));
}

#[test]
fn cleaning_reaches_into_lists_and_scores() {
    let phase = json!({"name": "Base", "min_days": 7, "min_compliance_pct": null});
    let mut noted = phase.clone();
    noted["notes"] = json!(["SECRET"]);
    assert_eq!(known_fields("programme.saved", &json!({"phases": [phase, noted]})), json!({"phases": [phase, phase]}));
    assert_eq!(known_fields("programme.saved", &json!({"phases": [noted, "SECRET"]})), json!({}));
    let check_in =
        json!({"check_in_id": "k", "scores": {"q1": 3}, "grades": {"q": "SECRET"}, "answers": {"q1": "SECRET"}});
    let clean = known_fields("check_in.submitted", &check_in);
    assert_eq!(clean, json!({"check_in_id": "k", "scores": {"q1": 3}}));
    assert_eq!(without_scores(&clean), json!({"check_in_id": "k"}));
}

/// JSON that a strict reader refuses.
const JUNK: [&str; 7] =
    [r#""x\ud83d""#, r#""\ude00x""#, r#""\ude00\ud83d""#, r#""\ud83d\u0041""#, r#""\ud83d\n\\""#, "1e999", "-1e999"];

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// Renders an object with these members.
fn object(members: &[(&str, &str)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, value)| format!("{name}:{value}")).collect();
    format!("{{{}}}", members.join(","))
}

#[test]
fn whole_pairs_and_other_escapes_are_read_as_they_are() {
    for text in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\"\u00e9\\""#, r#""é\t""#, "1.5", "null", r#"{"a":[true]}"#]
    {
        assert_eq!(lenient(&format!("\u{feff} {text}\n")), serde_json::from_str::<Value>(text).unwrap(), "{text}");
    }
}

#[test]
fn text_that_is_no_json_is_one_unreadable_value() {
    for text in
        ["", "{", "NaN", r#"{"a":1} {}"#, r#"{"a":"5" tall"}"#, r#"{"a":"\"#, r#"{"a":"\é"}"#, r#"{"a":undefined}"#]
    {
        assert_eq!(lenient(text), json!("\0"), "{text}");
    }
    assert_eq!(lenient(&"[".repeat(100_000)), json!("\0"));
}

#[test]
fn junk_in_an_unknown_field_is_dropped_with_it() {
    let plain = json!({"id": "f1", "occurred_at": "2026-01-01T00:00:00Z", "team_id": "t1", "client_cap": 5});
    let read = Fact::parse("team.saved", &plain).unwrap();
    let deep = [130, 100_000].map(nested);
    for junk in JUNK.iter().copied().chain(deep.iter().map(String::as_str)) {
        for name in [r#""bio""#, r#""bio\ud83d""#, r#""\u0000""#] {
            for value in [junk.to_owned(), format!("[{junk}]"), object(&[(r#""q1\ude00""#, junk)])] {
                let text = plain.to_string().replacen('{', &format!("{{{name}:{value},"), 1);
                let fact = lenient(&text);
                assert_eq!(Fact::parse("team.saved", &fact).as_ref(), Ok(&read), "{name}: {value:.60}");
                assert_eq!(known_fields("team.saved", &fact), plain, "{name}: {value:.60}");
            }
        }
    }
}

#[test]
fn junk_in_an_unknown_member_of_a_known_field_is_dropped_with_it() {
    let deep = [130, 100_000].map(nested);
    for junk in JUNK.iter().copied().chain(deep.iter().map(String::as_str)) {
        for name in [r#""note""#, r#""note\ud83d""#] {
            for (detail_type, field, value) in [
                ("workspace.saved", "plan", r#"{"client_cap":1,NAME:JUNK}"#),
                ("programme.saved", "phases", r#"[{"name":"A","min_days":1,NAME:JUNK,"min_compliance_pct":null}]"#),
                ("automation.saved", "trigger", r#"{"event":"new_client",NAME:[JUNK]}"#),
                ("automation.saved", "steps", r#"[{"kind":"email",NAME:{"x":JUNK}}]"#),
                ("calendar.saved", "weekly", r#"{"mon":[],NAME:JUNK}"#),
            ] {
                let text = format!(r#"{{"{field}":{}}}"#, value.replace("NAME", name).replace("JUNK", junk));
                let clean = known_fields(detail_type, &lenient(&text));
                let without = value.replace(r#",NAME:JUNK"#, "").replace(r#",NAME:[JUNK]"#, "");
                let without = without.replace(r#",NAME:{"x":JUNK}"#, "");
                assert_eq!(clean[field], serde_json::from_str::<Value>(&without).unwrap(), "{text:.200}");
            }
        }
    }
}

#[test]
fn junk_in_a_known_field_is_reported_and_the_others_stay() {
    let whole = json!({"id": "f1", "occurred_at": "2026-01-01T00:00:00Z", "coach_id": "ada"});
    let deep = [130, 100_000].map(nested);
    for (detail_type, field, value, path) in [
        ("client.saved", "id", "JUNK", "id"),
        ("client.saved", "backfill", "JUNK", "backfill"),
        ("automation.saved", "trigger", r#"{"event":"new_client","threshold":JUNK}"#, "trigger.threshold"),
        ("workspace.saved", "plan", r#"{"client_cap":JUNK}"#, "plan.client_cap"),
        ("programme.saved", "phases", r#"[{"name":JUNK}]"#, "phases.name"),
        ("calendar.saved", "weekly", r#"{"mon":[["09:00",JUNK]]}"#, "weekly.mon"),
        ("calendar.saved", "overrides", r#"{"2026-12-24":[[JUNK,"10:00"]]}"#, "overrides.2026-12-24"),
        ("check_in.submitted", "scores", r#"{"q":JUNK}"#, "scores"),
        ("check_in.submitted", "grades", r#"{"x\ud83d":4}"#, "grades"),
        ("calendar.saved", "overrides", r#"{"x\ud83d":[]}"#, "overrides"),
    ] {
        for junk in JUNK.iter().copied().chain(deep.iter().map(String::as_str)) {
            let rest = whole.to_string().replacen('{', "{\"client_id\":\"c\",\"check_in_id\":\"k\",\"name\":\"\",", 1);
            let rest = rest.replacen('{', "{\"submitted_at\":\"2026-01-01T00:00:00Z\",", 1);
            let text = rest.replacen('{', &format!("{{\"{field}\":{},", value.replace("JUNK", junk)), 1);
            let text = if field == "id" { text.replace(r#","id":"f1""#, "") } else { text };
            let fact = lenient(&text);
            let clean = known_fields(detail_type, &fact);
            assert_eq!(clean.get(field), None, "{text:.200}");
            assert_eq!(clean["occurred_at"], whole["occurred_at"], "{text:.200}");
            let error = Fact::parse(detail_type, &fact).unwrap_err();
            assert_eq!(error.field.as_deref(), Some(path), "{error}");
        }
    }
}

#[test]
fn a_reason_quotes_nothing_of_the_fact() {
    let secret = json!("SECRET");
    for (detail_type, field, wrong) in [
        ("workspace.saved", "plan", json!("SECRET")),
        (
            "workspace.saved",
            "entitlements",
            json!({"partner_api": "SECRET, expected SECRET", "pro_crm": true, "gym": true}),
        ),
        ("workspace.saved", "entitlements", json!(["SECRET"])),
        ("programme.saved", "phases", json!("SECRET")),
        ("programme.saved", "phases", json!([{"name": {"SECRET": 1}}])),
        ("calendar_event.saved", "status", secret.clone()),
        ("calendar_event.saved", "event_id", secret.clone()),
        ("check_in.submitted", "scores", json!({"SECRET": "SECRET"})),
        ("calendar.saved", "overrides", json!({"SECRET": [["SECRET", "SECRET"]]})),
        ("client.saved", "origin", secret.clone()),
        ("client.saved", "is_active", secret.clone()),
    ] {
        let fact = json!({"id": "f1", "occurred_at": "2026-01-01T00:00:00Z", field: wrong});
        let mut reasons = vec![Fact::parse(detail_type, &fact).unwrap_err().message];
        reasons.push(super::read::<super::FactBody, _>(super::named(detail_type, &fact)).unwrap_err().message);
        assert!(reasons.iter().all(|reason| !reason.contains("SECRET")), "{reasons:?}");
    }
}

/// Generates JSON whose leaves a strict reader may refuse.
fn junk() -> impl Strategy<Value = String> {
    let text = prop::collection::vec(
        prop_oneof![
            any::<char>().prop_map(|c| json!(c).to_string()).prop_map(|quoted| quoted[1..quoted.len() - 1].to_owned()),
            any::<u16>().prop_map(|unit| format!("\\u{unit:04x}")),
            prop::sample::select(vec![r"\\", r"\n", r"\/"]).prop_map(str::to_owned),
        ],
        0..20,
    );
    let text = text.prop_map(|parts| format!("\"{}\"", parts.concat())).boxed();
    let number = (any::<bool>(), any::<u128>(), any::<i16>());
    let number = number.prop_map(|(minus, digits, ten)| format!("{}{digits}e{ten}", if minus { "-" } else { "" }));
    let word = prop::sample::select(vec!["null", "true", "false", "[]", "{}"]);
    let leaf = prop_oneof![text.clone(), number, word.prop_map(str::to_owned), (1_usize..500).prop_map(nested)];
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
    fn an_unknown_field_never_affects_the_others(junk in junk(), at in 0_usize..7) {
        let mut members = vec![
            (r#""id""#, r#""f1""#),
            (r#""occurred_at""#, r#""2026-01-01T00:00:00Z""#),
            (r#""client_id""#, r#""c1""#),
            (r#""check_in_id""#, r#""k""#),
            (r#""submitted_at""#, r#""2026-01-01T00:00:00Z""#),
            (r#""scores""#, r#"{"sleep":4}"#),
            (r#""grades""#, r#"{}"#),
        ];
        let plain = lenient(&object(&members));
        members.insert(at, (r#""answers""#, &junk));
        let read = lenient(&object(&members));
        prop_assert_eq!(known_fields("check_in.submitted", &read), known_fields("check_in.submitted", &plain));
        prop_assert!(Fact::parse("check_in.submitted", &plain).is_ok());
        prop_assert_eq!(Fact::parse("check_in.submitted", &read), Fact::parse("check_in.submitted", &plain));
    }
}
