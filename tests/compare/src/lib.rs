//! Comparison of sets in tests: a failure names the place to change and lists the difference, one element a line.

use std::collections::BTreeSet;

/// Asserts that a place has exactly the expected elements. `place` is a file and the part of the file to change.
#[track_caller]
pub fn assert_same<F, E>(place: &str, found: F, expected: E)
where
    F: IntoIterator<Item: ToString>,
    E: IntoIterator<Item: ToString>,
{
    let difference = difference(found, expected);
    assert!(difference.is_empty(), "change {place}:{difference}");
}

fn difference<F, E>(found: F, expected: E) -> String
where
    F: IntoIterator<Item: ToString>,
    E: IntoIterator<Item: ToString>,
{
    let found: BTreeSet<String> = found.into_iter().map(|element| element.to_string()).collect();
    let expected: BTreeSet<String> = expected.into_iter().map(|element| element.to_string()).collect();
    let missing = expected.difference(&found).map(|element| format!("\n  missing there: {element}"));
    let unexpected = found.difference(&expected).map(|element| format!("\n  unexpected there: {element}"));
    missing.chain(unexpected).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_difference_is_listed() {
        assert_eq!(difference(["a", "b"], ["b", "a", "a"]), "");
        assert_eq!(difference(["a", "b"], ["b", "c"]), "\n  missing there: c\n  unexpected there: a");
    }
}
