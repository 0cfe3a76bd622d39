//! The table of all figures, and its place in README.md.

use std::path::Path;

use runtime::{BoxError, Clock, SystemClock};

const HEAD: &str = "\
| Work | Repeats | Store calls | Read units | Write units | CPU, ms | p50, ms | p99, ms | Dollars a million |
|---|---|---|---|---|---|---|---|---|";
const BEGIN: &str = "<!-- figures: `cargo run --package bench --release` replaces them -->\n";
const END: &str = "<!-- end of figures -->\n";

/// Returns the table of these rows, with their date and machine.
pub(crate) fn table(rows: &str) -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let (date, model) = (SystemClock.now().date_naive(), model.unwrap_or("unknown"));
    format!("Figures of {date}, from {cores} cores ({model}).\n\n{HEAD}\n{rows}")
}

/// Replaces the figures in README.md.
pub(crate) fn write(table: &str) -> Result<(), BoxError> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = replaced(&std::fs::read_to_string(&readme)?, table).ok_or("README.md has no place for figures")?;
    Ok(std::fs::write(readme, text)?)
}

/// Replaces what is between the marks. `None` if a mark is missing.
fn replaced(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_replace_earlier_figures_and_nothing_else() {
        let page = format!("# The bench\n\n{BEGIN}old\n{END}\nThe end.\n");
        let first = replaced(&page, "| 1 |\n").unwrap();
        assert_eq!(first, format!("# The bench\n\n{BEGIN}\n| 1 |\n\n{END}\nThe end.\n"));
        assert_eq!(replaced(&first, "| 1 |\n"), Some(first.clone()));
        assert_eq!(replaced("# The bench\n", "| 1 |\n"), None);
        assert!(replaced(include_str!("../README.md"), "").is_some(), "the README has a place for figures");
    }
}
