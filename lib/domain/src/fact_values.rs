//! How serde reads the fields of a fact: `deserialize_with` for what a field's type alone does not say.
//!
//! Errors are rules: sentences that begin with the field's name, which the reader of the fact adds. They quote nothing,
//! since a value may be personal. A field with such a function is required, even if its value may be null.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::email::{Email, MAX_EMAIL_CHARS};
use crate::fields::{LEAST_NUMBER, whole};
use crate::id::MAX_ID_CHARS;
use crate::phone::Phone;
use crate::time::{DATE_RULE, parse_date};

pub(crate) const MAX_NAME_CHARS: usize = 1_000;
/// Largest integer that every JSON parser keeps exactly (RFC 8259, section 6).
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
/// Most scores or grades of a check-in.
const MAX_SCORES: usize = 500;

/// Creates the rule of a field inside the value that is being read.
pub(crate) fn rule_of(field: &str, rule: impl fmt::Display) -> String {
    format!("`{field}` {rule}")
}

fn checked<E: Error>(text: String, max: usize) -> Result<String, E> {
    if text.contains('\0') {
        return Err(E::custom("must not contain the NUL character, nor half of a surrogate pair"));
    }
    let length = text.chars().count();
    if length > max {
        return Err(E::custom(format_args!("must be at most {max} characters; it has {length}")));
    }
    Ok(text)
}

/// Reads a text of 1 to `MAX` characters.
pub(crate) fn text<'de, const MAX: usize, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let text = String::deserialize(input)?;
    if text.is_empty() { Err(D::Error::custom("must not be empty")) } else { checked(text, MAX) }
}

/// Reads a text of at most `MAX` characters, or null. The application's own records may have an empty text for null.
pub(crate) fn optional_text<'de, const MAX: usize, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(input)?.filter(|text| !text.is_empty());
    text.map(|text| checked(text, MAX)).transpose()
}

/// Reads a name. The application's own records may have an empty name.
pub(crate) fn name<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    checked(String::deserialize(input)?, MAX_NAME_CHARS)
}

/// Reads an e-mail address as the application has it, or null.
pub(crate) fn email<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Email>, D::Error> {
    Ok(optional_text::<MAX_EMAIL_CHARS, D>(input)?.as_deref().map(Email::unchecked))
}

/// Reads a phone number as the application has it, or null.
pub(crate) fn phone<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Phone>, D::Error> {
    Ok(optional_text::<MAX_NAME_CHARS, D>(input)?.as_deref().map(Phone::as_given))
}

/// Reads a text of at most `max` characters that has rules of its own.
pub(crate) fn parsed<'de, D: Deserializer<'de>, T, E: fmt::Display>(
    input: D,
    max: usize,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    let text = checked(String::deserialize(input)?, max)?;
    parse(&text).map_err(D::Error::custom)
}

/// Reads one of an enum's names. serde would take an object with the name as well.
pub(crate) fn named<'de, D: Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    T::deserialize(String::deserialize(input)?.into_deserializer())
}

/// Reads a value or null.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(input)
}

/// Reads a calendar date.
pub(crate) fn date<'de, D: Deserializer<'de>>(input: D) -> Result<NaiveDate, D::Error> {
    parse_date(&String::deserialize(input)?).ok_or_else(|| D::Error::custom(DATE_RULE))
}

/// Reads a calendar date or null.
pub(crate) fn nullable_date<'de, D: Deserializer<'de>>(input: D) -> Result<Option<NaiveDate>, D::Error> {
    #[derive(Deserialize)]
    struct Date(#[serde(deserialize_with = "date")] NaiveDate);
    Ok(Option::<Date>::deserialize(input)?.map(|date| date.0))
}

/// Reads a whole number in a range, by the rules of [`whole`].
pub(crate) fn within<'de, D, N>(input: D, range: RangeInclusive<N>) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<u64> + PartialOrd + fmt::Display,
{
    let number = whole(&Value::deserialize(input)?, u64::MAX).and_then(|number| N::try_from(number).ok());
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| D::Error::custom(format_args!("must be an integer from {} to {}", range.start(), range.end())))
}

/// Reads an amount of money.
pub(crate) fn cents<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    within(input, 0..=MAX_SAFE_INTEGER)
}

/// Reads a whole number that fits in 32 bits.
pub(crate) fn count<'de, D: Deserializer<'de>>(input: D) -> Result<u32, D::Error> {
    within(input, 0..=u32::MAX)
}

/// Reads a whole number that fits in 32 bits, or null.
pub(crate) fn nullable_count<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    struct Count(#[serde(deserialize_with = "count")] u32);
    Ok(Option::<Count>::deserialize(input)?.map(|count| count.0))
}

/// Returns the number that is stored for a given one: a number too close to 0 becomes the closest one that fits.
pub(crate) fn storable(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number.abs().max(LEAST_NUMBER).copysign(number) }
}

/// Reads a value whose type depends on another field. Objects and lists have no use there.
pub(crate) fn scalar<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Value>, D::Error> {
    match Value::deserialize(input)? {
        Value::Null => Ok(None),
        Value::Object(_) | Value::Array(_) => Err(D::Error::custom("must not be an object or a list")),
        Value::String(text) => checked(text, usize::MAX).map(|text| Some(text.into())),
        value => Ok(Some(value)),
    }
}

/// Reads numbers by name. The names are no part of an error.
pub(crate) fn numbers<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let given = Value::deserialize(input)?;
    let is_name = |name: &String| !name.contains('\0') && name.chars().count() <= MAX_ID_CHARS;
    let members = given.as_object().filter(|members| members.len() <= MAX_SCORES && members.keys().all(is_name));
    let numbers = members.and_then(|members| {
        members.iter().map(|(name, number)| Some((name.clone(), number.as_f64()?))).collect::<Option<_>>()
    });
    numbers.ok_or_else(|| {
        D::Error::custom(format_args!(
            "must be an object of at most {MAX_SCORES} numbers, with names of at most {MAX_ID_CHARS} characters"
        ))
    })
}

/// A struct that is read from an object only. serde would take a list of its fields as well.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(Object)
            }
        }
        input.deserialize_map(Members(PhantomData))
    }
}

/// Reads a struct from an object.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    Ok(Object::deserialize(input)?.0)
}

/// Reads a struct from an object, or null.
pub(crate) fn nullable_object<'de, D, T>(input: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Object<T>>::deserialize(input)?.map(|object| object.0))
}

/// Reads a list of at most `MAX` structs, each from an object.
pub(crate) fn objects<'de, const MAX: usize, D, T>(input: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let objects = Vec::<Object<T>>::deserialize(input)?;
    if objects.len() > MAX {
        return Err(D::Error::custom(format_args!("must be an array of at most {MAX} objects")));
    }
    Ok(objects.into_iter().map(|object| object.0).collect())
}
