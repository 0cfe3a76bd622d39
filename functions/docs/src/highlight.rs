//! Code as HTML, with the class of each token. `lib/edge/src/look/parts.css` has the colours.

use domain::html::escape;
use hl_lite::{Kind, Lang, highlight};

/// Words of PHP and Go that the lexer of JavaScript does not know.
const OTHER_KEYWORDS: [&str; 14] = [
    "chan",
    "defer",
    "echo",
    "fallthrough",
    "fn",
    "foreach",
    "func",
    "go",
    "map",
    "package",
    "php",
    "range",
    "struct",
    "type",
];

/// Renders code. `language` is the name in a fence; code in an unknown language stays plain.
pub(crate) fn to_html(language: &str, code: &str) -> String {
    match language {
        "http" => request(code),
        "php" | "go" => tokens(Lang::JavaScript, code),
        language => Lang::from_slug(language).map_or_else(|| escape(code), |language| tokens(language, code)),
    }
}

fn tokens(language: Lang, code: &str) -> String {
    let spans = highlight(language, code);
    spans
        .into_iter()
        .map(|span| match class_of(span.kind) {
            Some(class) => token(class, span.text),
            None if span.kind == Kind::Plain && language == Lang::JavaScript => words(span.text),
            None => escape(span.text),
        })
        .collect()
}

/// The class of a token: keyword, string, number, comment, call, property, variable or option.
fn class_of(kind: Kind) -> Option<char> {
    match kind {
        Kind::Keyword | Kind::Constant | Kind::Tag => Some('k'),
        Kind::String => Some('s'),
        Kind::Number => Some('n'),
        Kind::Comment => Some('c'),
        Kind::Function => Some('f'),
        Kind::Property | Kind::Type => Some('p'),
        Kind::Variable => Some('v'),
        Kind::Attribute => Some('o'),
        Kind::Plain | Kind::Operator | Kind::Punctuation => None,
    }
}

/// Marks variables of PHP, and keywords that JavaScript does not have.
fn words(text: &str) -> String {
    let is_in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let mut html = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_in_word(c) != is_in_word(first)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        html += &match word {
            _ if first == '$' => token('v', word),
            _ if OTHER_KEYWORDS.contains(&word) => token('k', word),
            _ => escape(word),
        };
        rest = behind;
    }
    html
}

/// Renders a request or an answer: the first line, the headers, and a body of JSON.
fn request(text: &str) -> String {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let first = lines.next().map(|line| {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        format!("{} {}", token('f', word), escape(rest))
    });
    let header = |line: &str| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {}", token('p', name), token('s', value)),
        None => escape(line),
    };
    let head: Vec<String> = first.into_iter().chain(lines.map(header)).collect();
    let gap = if body.is_empty() { "" } else { "\n\n" };
    format!("{}{gap}{}", head.join("\n"), tokens(Lang::Json, body))
}

fn token(class: char, text: &str) -> String {
    format!("<span class=\"{class}\">{}</span>", escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_the_class_of_its_kind_in_each_language_and_no_character_is_lost() {
        for (language, code, wanted) in [
            ("sh", "curl -s \"a $KEY\"", "<span class=\"v\">$KEY</span>"),
            ("json", "{\"a\": [1, null, \"<b>\"]}", "<span class=\"s\">&quot;&lt;b&gt;&quot;</span>"),
            ("python", "import os  # why", "<span class=\"c\"># why</span>"),
            ("js", "const a = await b(1);", "<span class=\"k\">await</span>"),
            ("php", "<?php\n$body = 'a';\necho $body;", "<span class=\"v\">$body</span>"),
            ("go", "func main() { a := 1 }", "<span class=\"k\">func</span>"),
            ("rust", "let a = 1;", "<span class=\"k\">let</span>"),
            (
                "http",
                "HTTP/1.1 201 Created\na: b\n\n{\"c\": 1}",
                "<span class=\"p\">a</span>: <span class=\"s\">b</span>",
            ),
            ("unknown", "a < b", "a &lt; b"),
        ] {
            let html = to_html(language, code);
            assert!(html.contains(wanted), "{language}: {html}");
            let text: String =
                html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
            assert_eq!(text, escape(code), "{language}");
        }
    }
}
