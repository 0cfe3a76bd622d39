//! The integrators' guides: Markdown files in `pages`.
//!
//! The operators' guides in `infra/guides` are not served. The tests here check both against the code's constants.

use domain::api_key::{Permission, Scope};
use edge::routes::ROUTES;

use crate::deployment::Deployment;
use crate::page::{Form, Page};
use crate::site::{GUIDES, without_marks};

/// Changes that the start page shows.
const LATEST_CHANGES: usize = 4;

/// Code of receivers, which replaces `<<name>>` in a guide. The files are those that the tests run.
const RECEIVERS: [(&str, &str); 4] = [
    ("receiver.py", include_str!("../../../tests/receivers/receiver.py")),
    ("receiver.mjs", include_str!("../../../tests/receivers/receiver.mjs")),
    ("receiver.go", include_str!("../../../tests/receivers/receiver.go")),
    ("receiver.rs", include_str!("../../../tests/receivers/receiver.rs")),
];

/// Removes the marks behind numbers and links to a guide that the deployment does not show, and inserts the code of the
/// receivers, the tables of permissions and the latest changes.
pub(crate) fn markdown(text: &str, deployment: &Deployment) -> String {
    let receivers = RECEIVERS.map(|(name, file)| (name.to_owned(), without_header(file).to_owned()));
    let permissions = Scope::ALL.map(|scope| (format!("permissions of {} keys", scope.as_str()), permissions(scope)));
    let latest = [("latest changes".to_owned(), latest_changes(deployment))];
    let inserted = receivers.into_iter().chain(permissions).chain(latest);
    let text = deployment.without_lost_links(&without_marks(text));
    inserted.fold(text, |text, (name, made)| text.replace(&format!("<<{name}>>\n"), &made))
}

/// The table of the permissions of a scope, with the routes that each opens.
fn permissions(scope: Scope) -> String {
    let row = |permission: Permission| {
        let routes = ROUTES.iter().filter(|route| route.permission() == Some(permission));
        let routes: Vec<String> = routes.map(|route| format!("`{route}`")).collect();
        format!("| `{}` | {} | {} |\n", permission.as_str(), permission.title(), routes.join(", "))
    };
    let rows: String = Permission::of(scope).into_iter().map(row).collect();
    format!("| Permission | Opens | Routes |\n|---|---|---|\n{rows}")
}

/// The latest lines of the changelog, as a list.
fn latest_changes(deployment: &Deployment) -> String {
    let changes = GUIDES.iter().find(|guide| guide.name == "changes").map(|guide| without_marks(guide.text));
    let changes = deployment.without_lost_links(&changes.unwrap_or_default());
    let rows = changes.lines().filter_map(|line| line.strip_prefix("| `")).take(LATEST_CHANGES);
    let item = |row: &str| {
        let mut cells = row.trim_end_matches(" |").split(" | ");
        let (date, what, read) = (cells.next()?.trim_end_matches('`'), cells.next()?, cells.next()?);
        Some(format!("- {read}. {what} ({date}).\n"))
    };
    rows.filter_map(item).collect()
}

/// Cuts the header of a file, which ends at the first blank line.
fn without_header(file: &str) -> &str {
    file.split_once("\n\n").map_or(file, |(_, rest)| rest)
}

/// Builds the pages of the guides that the deployment shows.
pub(crate) fn pages(deployment: &Deployment) -> impl Iterator<Item = Page> {
    let shown = GUIDES.iter().filter(|guide| deployment.shows(guide));
    shown.map(|guide| Page::new(guide.group, guide.path(), markdown(guide.text, deployment), Form::Guide))
}

#[cfg(test)]
mod numbers;
#[cfg(test)]
mod tests;
