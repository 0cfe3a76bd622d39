//! The integrators' guides: Markdown files in `pages`.
//!
//! The operators' guides in `infra/guides` are not served. The tests here check both against the code's constants.

use domain::api_key::{Permission, Scope};
use edge::routes::ROUTES;

use crate::page::{Page, Part};
use crate::site::{GUIDES, without_marks};

/// Code of receivers, which replaces `<<name>>` in a guide. The files are those that the tests run.
const RECEIVERS: [(&str, &str); 4] = [
    ("receiver.py", include_str!("../../../tests/receivers/receiver.py")),
    ("receiver.mjs", include_str!("../../../tests/receivers/receiver.mjs")),
    ("receiver.go", include_str!("../../../tests/receivers/receiver.go")),
    ("receiver.rs", include_str!("../../../tests/receivers/receiver.rs")),
];

/// Removes the marks behind numbers, and inserts the code of the receivers and the tables of permissions.
pub(crate) fn markdown(text: &str) -> String {
    let receivers = RECEIVERS.map(|(name, file)| (name.to_owned(), without_header(file).to_owned()));
    let permissions = Scope::ALL.map(|scope| (format!("permissions of {} keys", scope.as_str()), permissions(scope)));
    let inserted = receivers.into_iter().chain(permissions);
    inserted.fold(without_marks(text), |text, (name, made)| text.replace(&format!("<<{name}>>\n"), &made))
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

/// Cuts the header of a file, which ends at the first blank line.
fn without_header(file: &str) -> &str {
    file.split_once("\n\n").map_or(file, |(_, rest)| rest)
}

/// Builds the pages of all guides.
pub(crate) fn pages() -> impl Iterator<Item = Page> {
    GUIDES.iter().map(|guide| Page::new(Part::Guides, guide.path(), markdown(guide.text)))
}

#[cfg(test)]
mod numbers;
#[cfg(test)]
mod tests;
