//! Tables in Markdown.

/// Renders a table, or nothing if it has no rows.
pub(super) fn render<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let rows: String = rows.into_iter().map(|row| line(&row.map(|cell| cell_of(&cell)))).collect();
    if rows.is_empty() {
        return rows;
    }
    format!("\n{}|{}\n{rows}", line(&head), "---|".repeat(N))
}

fn line(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// A text on one line, with the bars that would end the cell.
fn cell_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
