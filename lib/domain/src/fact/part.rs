//! Reads the structs of a fact from its detail: a struct takes the members that it names and skips the others.

use std::fmt::Write;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde_ignored::Path;
use serde_json::{Error, Value};
use serde_path_to_error::{Segment, Track};

use crate::fields::Invalid;

/// An enum with a variant for each kind of fact, read from a fact's name and detail.
type Named<'de> = MapAccessDeserializer<MapDeserializer<'de, std::iter::Once<(&'de str, &'de Value)>, Error>>;

pub(super) fn named<'de>(name: &'de str, detail: &'de Value) -> Named<'de> {
    MapAccessDeserializer::new(MapDeserializer::new(std::iter::once((name, detail))))
}

/// Returns true if the enum has a variant of that name. serde tells this from a wrong content by the text alone.
pub(super) fn has_variant<'de, T: Deserialize<'de>>(name: &'de str) -> bool {
    !T::deserialize(named(name, &Value::Null)).is_err_and(|error| error.to_string().starts_with("unknown variant"))
}

/// Reads a struct. An error names the path of the field and the rule, and quotes nothing of the value.
pub(super) fn read<'de, T, D>(input: D) -> Result<T, Invalid>
where
    T: Deserialize<'de>,
    D: serde::Deserializer<'de, Error = Error>,
{
    serde_path_to_error::deserialize(input).map_err(|error| {
        let (mut field, mut place) = (String::new(), String::new());
        for segment in error.path() {
            match segment {
                Segment::Map { key } => [&mut field, &mut place].into_iter().for_each(|path| extend(path, key)),
                Segment::Seq { index } => _ = write!(place, "[{index}]"),
                Segment::Enum { .. } | Segment::Unknown => {}
            }
        }
        let text = error.inner().to_string();
        let (member, rule) = split(&text);
        if let Some(member) = member {
            [&mut field, &mut place].into_iter().for_each(|path| extend(path, member));
        }
        Invalid { message: format!("{place} {rule}"), field: Some(field) }
    })
}

fn extend(path: &mut String, member: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(member);
}

/// Splits the text of serde's error into the member that it is about, if it is about one, and the rule.
fn split(text: &str) -> (Option<&str>, String) {
    let missing = text.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    let own = text.strip_prefix('`').and_then(|rest| rest.split_once("` "));
    match (missing, own, text.rsplit_once(", expected ")) {
        (Some(member), ..) => (Some(member), "is required".to_owned()),
        (_, Some((member, rule)), _) => (Some(member), rule.to_owned()),
        // The text before quotes the value.
        (.., Some((_, "a sequence"))) => (None, "must be a list".to_owned()),
        (.., Some((_, "a map"))) => (None, "must be an object".to_owned()),
        (.., Some((_, expected))) => (None, format!("must be {expected}")),
        _ => (None, text.to_owned()),
    }
}

/// The place of a member that no struct names: the JSON pointer of its object, and its name.
pub(super) type Unnamed = (String, String);

/// The fate of a member that a struct was given alone.
pub(super) enum Member {
    /// The struct has no such field.
    Unknown,
    /// The member is a field, and its value is wrong.
    Wrong,
    /// The member is a field, and right but for these members of its value.
    Read(Vec<Unnamed>),
}

/// Reads a struct from one member alone. The errors about missing ones make no difference.
pub(super) fn trial<'de, T, D>(input: D) -> Member
where
    T: Deserialize<'de>,
    D: serde::Deserializer<'de, Error = Error>,
{
    let (mut unnamed, mut track) = (Vec::new(), Track::new());
    let mut note = |path: Path<'_>| {
        if let Path::Map { parent, key } = path {
            unnamed.push((pointer(parent), key));
        }
    };
    let input = serde_ignored::Deserializer::new(input, &mut note);
    let is_read = T::deserialize(serde_path_to_error::Deserializer::new(input, &mut track)).is_ok();
    let is_inside = |segment: &Segment| matches!(segment, Segment::Map { .. });
    match unnamed {
        unnamed if unnamed.iter().any(|(object, _)| object.is_empty()) => Member::Unknown,
        _ if !is_read && track.path().iter().any(is_inside) => Member::Wrong,
        unnamed => Member::Read(unnamed),
    }
}

/// Returns the JSON pointer (RFC 6901) of an object in a fact. The names of structs need no escapes.
fn pointer(path: &Path<'_>) -> String {
    match path {
        Path::Root => String::new(),
        Path::Map { parent, key } => format!("{}/{key}", pointer(parent)),
        Path::Seq { parent, index } => format!("{}/{index}", pointer(parent)),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => pointer(parent),
    }
}
