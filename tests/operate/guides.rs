//! The commands that the operators' guides show.

use std::path::Path;
use std::process::Command;

/// Words with which a text is no command, or one that takes no help behind it.
const NO_COMMANDS: [&str; 4] = ["()", "--help", "|", "--"];

/// The lines of code and the quoted texts of all guides that begin with the command's name.
fn shown() -> Vec<String> {
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("infra/guides");
    let mut shown = Vec::new();
    for guide in std::fs::read_dir(guides).unwrap() {
        let text = std::fs::read_to_string(guide.unwrap().path()).unwrap();
        let quoted = text.split('`').map(str::to_owned);
        let lines = text.lines().map(|line| line.trim_start().trim_start_matches("$ ").to_owned());
        shown.extend(quoted.chain(lines).filter(|text| text.starts_with("operate ")));
    }
    shown.sort_unstable();
    shown.dedup();
    shown
}

/// The words of a command up to a pipe, a substitution or a comment, without quotes.
fn words(line: &str) -> Vec<String> {
    let end = line.find([';', '|', '#']).unwrap_or(line.len());
    let end = line.find("$(").unwrap_or(end).min(end);
    let mut words = Vec::new();
    for (index, part) in line[..end].split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

#[test]
fn each_command_of_a_guide_is_one_of_the_tool() {
    let shown = shown();
    assert!(shown.len() > 30, "{shown:?}");
    for line in shown {
        let words = words(&line);
        if NO_COMMANDS.iter().any(|other| words.iter().any(|word| word == other)) {
            continue;
        }
        // Help comes before the check of what is missing, and after that of what is unknown.
        let ran =
            Command::new(env!("CARGO_BIN_EXE_operate-under-test")).args(&words[1..]).arg("--help").output().unwrap();
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}
