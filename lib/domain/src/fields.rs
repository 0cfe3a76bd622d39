//! Reads a JSON object field by field, so that an error names the field and the rule.
//!
//! A body is parsed by hand beside its schema (`openapi`) instead of by a derive: its refusals come in a promised order
//! and name limits, and a derive takes two lines for a field with a rule where [`Fields`] takes one.
//!
//! Lengths count Unicode scalar values. NUL is refused in every text: no field has a use for it, and some readers stop
//! there.

use chrono::NaiveDate;
use serde_json::{Map, Value};

use crate::time::{DATE_RULE, TIME_RULE, Timestamp, parse_date};
use crate::visible::does_not_show;

/// Largest body of a request, in bytes.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// Deepest nesting of a JSON body.
pub const MAX_JSON_DEPTH: usize = 32;

/// The error of a field, or of the whole object (no field).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// The field's name, nested ones with dots.
    pub field: Option<String>,
    /// A full sentence that names the field and the rule.
    pub message: String,
}

impl Invalid {
    /// Creates the error of a field. `rule` completes a sentence that begins with the field's name.
    pub fn field(name: &str, rule: impl std::fmt::Display) -> Self {
        Self { field: Some(name.to_owned()), message: format!("{name} {rule}") }
    }

    /// Creates the error of a query parameter that a route does not have.
    pub fn unknown_parameter(name: &str, known: &[&str]) -> Self {
        let takes = known.join(", ");
        Self::field(&shortened(name), format_args!("is not a parameter of this request; it takes {takes}"))
    }

    pub fn whole(message: impl Into<String>) -> Self {
        Self { field: None, message: message.into() }
    }

    /// Names the object that holds the field, as in `events.types`.
    fn within(self, object: &str) -> Self {
        let Self { field: Some(field), message } = self else { return self };
        Self { field: Some(format!("{object}.{field}")), message: format!("{object}.{message}") }
    }
}

/// Creates the list of fields that a change sets, from each name and whether the change has it.
pub(crate) fn named_fields<const N: usize>(fields: [(&'static str, bool); N]) -> Vec<String> {
    fields.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned()).collect()
}

/// Smallest positive number that is stored: a number closer to 0 becomes this.
pub(crate) const LEAST_NUMBER: f64 = 1e-130;

/// Limits on the quotes of a caller's text in a refusal: answers are stored, and must not hold a body.
const MAX_NAMED: usize = 10;
const MAX_QUOTED_CHARS: usize = 64;
/// Longest text that is parsed as a time.
const LONGEST_TIME: usize = 64;

/// A JSON object that is being read.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub fn body(value: &'a Value) -> Result<Self, Invalid> {
        let object = value.as_object().ok_or_else(|| Invalid::whole("The body must be a JSON object."))?;
        Ok(Self { object })
    }

    /// Returns the error of a field that breaks `rule`, which completes a sentence that begins with the field's name.
    pub fn refuse(&self, name: &str, rule: impl std::fmt::Display) -> Invalid {
        Invalid::field(name, rule)
    }

    /// Returns true if the field is present and not null.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Returns true if the field is present, null or not.
    pub fn mentions(&self, name: &str) -> bool {
        self.object.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.object.keys().map(String::as_str)
    }

    /// Returns the field's value; null counts as omitted.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// Refuses fields that no caller may set.
    pub fn forbid(&self, names: &[&str]) -> Result<(), Invalid> {
        match names.iter().find(|name| self.object.contains_key(**name)) {
            Some(name) => Err(self.refuse(name, "cannot be set: the coach is taken from the key")),
            None => Ok(()),
        }
    }

    /// Refuses fields beyond `known`, and names as many as the message has room for.
    pub fn only(&self, known: &[&str]) -> Result<(), Invalid> {
        let unknown: Vec<&str> = self.names().filter(|name| !known.contains(name)).collect();
        let Some(first) = unknown.first() else { return Ok(()) };
        let takes = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let named: Vec<String> = unknown.iter().take(MAX_NAMED).map(|name| shortened(name)).collect();
        let names = match unknown.len() - named.len() {
            0 if unknown.len() == 1 => format!("{} is not a field", named[0]),
            0 => format!("{} are not fields", named.join(", ")),
            more => format!("{} and {more} more are not fields", named.join(", ")),
        };
        Err(Invalid { field: Some(shortened(first)), message: format!("{names} of this request; it takes {takes}") })
    }

    /// Reads the body of a request. Unknown fields and null are refused.
    pub fn strict(value: &'a Value, known: &[&str]) -> Result<Self, Invalid> {
        let fields = Self::body(value)?;
        fields.only(known)?;
        match fields.object.iter().find(|(_, value)| value.is_null()) {
            Some((name, _)) => {
                Err(fields.refuse(name, "must not be null; give it a value, or leave it out where it is optional"))
            }
            None => Ok(fields),
        }
    }

    /// Reads a text of 1 to `max` characters; omitted or null is `None`, empty is an error.
    pub fn text(&self, name: &str, max: usize) -> Result<Option<&'a str>, Invalid> {
        self.text_of(name, max, "must not be empty; leave it out instead")
    }

    fn needed<T>(&self, name: &str, found: Option<T>) -> Result<T, Invalid> {
        found.ok_or_else(|| self.refuse(name, "is required"))
    }

    fn text_of(&self, name: &str, max: usize, if_empty: &str) -> Result<Option<&'a str>, Invalid> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.refuse(name, "must be a string"))?;
        if text.is_empty() {
            return Err(self.refuse(name, if_empty));
        }
        if text.contains('\0') {
            return Err(self.refuse(name, "must not contain the NUL character"));
        }
        let length = text.chars().count();
        if length > max {
            return Err(self.refuse(name, format_args!("must be at most {max} characters; it has {length}")));
        }
        Ok(Some(text))
    }

    /// Reads a required text, otherwise like [`Fields::text`].
    pub fn required_text(&self, name: &str, max: usize) -> Result<&'a str, Invalid> {
        self.needed(name, self.text_of(name, max, "must not be empty")?)
    }

    /// Reads a text like [`Fields::text`] that people find things by: it has a visible character.
    pub fn visible_text(&self, name: &str, max: usize) -> Result<Option<&'a str>, Invalid> {
        let text = self.text(name, max)?;
        match text {
            Some(text) if text.chars().all(does_not_show) => {
                Err(self.refuse(name, "must have a visible character; blanks alone show nothing"))
            }
            _ => Ok(text),
        }
    }

    /// Reads a required text, otherwise like [`Fields::visible_text`].
    pub fn required_visible_text(&self, name: &str, max: usize) -> Result<&'a str, Invalid> {
        self.needed(name, self.visible_text(name, max)?)
    }

    /// Reads a text that parses to a type with rules of its own.
    pub fn parsed<T, E: std::fmt::Display>(
        &self,
        name: &str,
        max: usize,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Invalid> {
        let Some(text) = self.text(name, max)? else { return Ok(None) };
        parse(text).map(Some).map_err(|rule| self.refuse(name, rule))
    }

    /// Reads a required value, otherwise like [`Fields::parsed`].
    pub fn required<T, E: std::fmt::Display>(
        &self,
        name: &str,
        max: usize,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Invalid> {
        parse(self.required_text(name, max)?).map_err(|rule| self.refuse(name, rule))
    }

    /// Reads an object within the object. The errors of its fields name both, as in `events.types`.
    pub fn nested<T>(
        &self,
        name: &str,
        parse: impl FnOnce(Fields<'a>) -> Result<T, Invalid>,
    ) -> Result<Option<T>, Invalid> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let object = value.as_object().ok_or_else(|| self.refuse(name, "must be an object"))?;
        parse(Fields { object }).map(Some).map_err(|invalid| invalid.within(name))
    }

    pub fn boolean(&self, name: &str) -> Result<Option<bool>, Invalid> {
        self.value(name).map(|value| value.as_bool().ok_or_else(|| self.refuse(name, "must be a boolean"))).transpose()
    }

    /// Reads a required boolean.
    pub fn required_boolean(&self, name: &str) -> Result<bool, Invalid> {
        self.boolean(name)?.ok_or_else(|| self.refuse(name, "is required and must be a boolean"))
    }

    /// Reads a number above 0 and at most `max`. A number too close to 0 for the store becomes the closest one that
    /// fits.
    pub fn positive_number(&self, name: &str, max: f64) -> Result<Option<f64>, Invalid> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = value.as_f64().ok_or_else(|| self.refuse(name, "must be a number"))?;
        if number > 0.0 && number <= max {
            Ok(Some(number.max(LEAST_NUMBER)))
        } else {
            Err(self.refuse(name, format_args!("must be a number above 0 and at most {max}")))
        }
    }

    /// Reads a whole number from 0 to `max` by JSON Schema's rules: `1.0` and `1e3` are whole, `"1"` is not a number.
    /// Every JSON reader must hold `max` exactly.
    pub fn whole_number(&self, name: &str, max: u64) -> Result<Option<u64>, Invalid> {
        let Some(value) = self.value(name) else { return Ok(None) };
        whole(value, max).map(Some).ok_or_else(|| self.refuse(name, format_args!("must be an integer from 0 to {max}")))
    }

    pub fn timestamp(&self, name: &str) -> Result<Option<Timestamp>, Invalid> {
        self.parsed(name, LONGEST_TIME, |text| Timestamp::parse(text).ok_or(TIME_RULE))
    }

    /// Reads a required instant.
    pub fn required_timestamp(&self, name: &str) -> Result<Timestamp, Invalid> {
        self.required(name, LONGEST_TIME, |text| Timestamp::parse(text).ok_or(TIME_RULE))
    }

    /// Reads a required calendar date.
    pub fn required_date(&self, name: &str) -> Result<NaiveDate, Invalid> {
        const LENGTH: usize = 10;
        self.required(name, LENGTH, |text| parse_date(text).ok_or(DATE_RULE))
    }

    /// Reads a list of these names; omitted or null is `None`. Each name is in the result once, in the order of `all`.
    pub fn list<T: Copy>(
        &self,
        name: &str,
        all: &[T],
        as_str: fn(T) -> &'static str,
    ) -> Result<Option<Vec<T>>, Invalid> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let mistyped = || self.refuse(name, "must be an array of strings");
        let unknown = |text: &str| {
            let names: Vec<&str> = all.iter().map(|item| as_str(*item)).collect();
            self.refuse(name, format_args!("takes {}; \"{}\" is none of them", names.join(", "), shortened(text)))
        };
        let mut chosen = vec![false; all.len()];
        for item in value.as_array().ok_or_else(mistyped)? {
            let text = item.as_str().ok_or_else(mistyped)?;
            let position = all.iter().position(|known| as_str(*known) == text).ok_or_else(|| unknown(text))?;
            chosen[position] = true;
        }
        Ok(Some(all.iter().zip(chosen).filter(|(_, is_chosen)| *is_chosen).map(|(item, _)| *item).collect()))
    }
}

/// Returns the part of a text that a refusal quotes.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns a whole number from 0 to `max`, by the rules of [`Fields::whole_number`].
pub(crate) fn whole(value: &Value, max: u64) -> Option<u64> {
    let is_whole = |number: &f64| number.fract() == 0.0 && (0.0..=max as f64).contains(number);
    let number = value.as_u64().or_else(|| value.as_f64().filter(is_whole).map(|number| number as u64));
    number.filter(|number| *number <= max)
}
