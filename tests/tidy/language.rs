//! Language of the code: widths of comment lines, beginnings of doc comments, names of public types.

use std::collections::BTreeMap;

use crate::tidy::tree::rust_files;

/// Longest comment line, as `.rustfmt.toml` has it for code.
const MAX_COLUMNS: usize = 120;
/// A doc comment begins with a noun phrase or a verb.
const POOR_BEGINNINGS: [&str; 6] = ["What ", "Whoever ", "Whether ", "Of a ", "Of an ", "So many "];

/// The text of a doc comment line.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim_start)
}

#[test]
fn comment_lines_keep_to_the_width_of_the_code() {
    let mut wide = Vec::new();
    for (name, text) in rust_files(&["lib", "functions", "infra", "tests"]) {
        let comments = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
        let too_wide = comments.filter(|(_, line)| !line.contains("https://") && line.chars().count() > MAX_COLUMNS);
        wide.extend(too_wide.map(|(number, _)| format!("{name}:{}", number + 1)));
    }
    assert!(wide.is_empty(), "wrap these comments at {MAX_COLUMNS} columns: {wide:#?}");
}

#[test]
fn doc_comments_begin_with_what_the_item_is_or_does() {
    for (name, text) in rust_files(&["lib", "functions", "infra", "tests"]) {
        let mut is_within = false;
        for (number, line) in text.lines().enumerate() {
            let doc = doc(line);
            let begins = doc.filter(|_| !is_within);
            let poor = begins.and_then(|text| POOR_BEGINNINGS.iter().find(|poor| text.starts_with(**poor)));
            assert!(
                poor.is_none(),
                "{name}:{}: begins with {:?}; begin with a noun phrase or a verb that says what the item is or does",
                number + 1,
                poor.unwrap_or(&"")
            );
            is_within = doc.is_some();
        }
    }
}

#[test]
fn a_crate_has_one_public_type_of_a_name() {
    let mut seen: BTreeMap<(String, String), String> = BTreeMap::new();
    for (name, text) in rust_files(&["lib", "functions"]) {
        let package = name.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let ["pub", "struct" | "enum" | "trait" | "type", declared, ..] = words[..] else { continue };
            let declared: String = declared.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            // A macro names its types later.
            if declared.is_empty() {
                continue;
            }
            let other = seen.insert((package.clone(), declared.clone()), name.clone());
            assert!(
                other.is_none(),
                "rename one: the public type {declared} is in {name} and in {}",
                other.unwrap_or_default()
            );
        }
    }
}
