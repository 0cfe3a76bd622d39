//! Names of people in several spellings, and the texts that find them with the filter `name`.

/// Names of people.
pub(crate) const NAMES: [&str; 12] = [
    "Jürgen Müller",
    "JURGEN MULLER",
    "Ute Groß",
    "Ute GROSS",
    "Łukasz Wałęsa",
    "Işık Yılmaz",
    "ISIK YILMAZ",
    "İbrahim Işıl",
    "Ada  \u{a0}Lovelace",
    "Søren Þórsson",
    "Otto Mueller",
    // The application's records may have an empty name.
    "",
];

/// Texts of the filter, each with the places of the names that contain it.
pub(crate) const FOUND_BY_NAME: [(&str, &[usize]); 19] = [
    ("müller", &[0, 1]),
    ("Ju\u{308}rgen", &[0, 1]),
    ("mueller", &[10]),
    ("ller", &[0, 1, 10]),
    ("GROSS", &[2, 3]),
    ("groß", &[2, 3]),
    ("ss", &[2, 3, 9]),
    ("lukasz walesa", &[4]),
    ("ŁUK", &[4]),
    ("isik yilmaz", &[5, 6]),
    ("IŞIK", &[5, 6]),
    ("ibrahim", &[7]),
    ("ıbrahım ISIL", &[7]),
    ("ada love", &[8]),
    (" ADA \t\u{3000} lovelace ", &[8]),
    ("soren th", &[9]),
    ("adalovelace", &[]),
    ("lovelace ada", &[]),
    ("%%", &[]),
];

/// Texts that the filter refuses: too short, too long, or without a sign that shows.
pub(crate) const BAD_NAME_FILTERS: [&str; 8] =
    ["a", "é", "ß", TOO_LONG, "  ", "\u{301}\u{308}", "\u{a8}\u{200b}", "\0\0"];

/// One character more than the filter takes.
const TOO_LONG: &str = concat!(
    "a a a a a a a a a a a a a a a a a a a a a a a a a ",
    "a a a a a a a a a a a a a a a a a a a a a a a a a ",
    "a",
);

/// A text as a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
