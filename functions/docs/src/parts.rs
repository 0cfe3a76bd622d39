//! Parts of pages, as HTML. `lib/edge/src/look/parts.css` and `assets/style.css` have their look.

use maud::{Markup, PreEscaped, html};

use crate::highlight;
use crate::site::ICONS;

/// A panel of tabs.
pub(crate) struct Panel {
    /// The id of the panel in the page.
    pub(crate) id: String,
    pub(crate) title: Markup,
    pub(crate) content: Markup,
}

/// Tabs whose panels change together on the whole page, and on the next pages.
#[derive(Clone, Copy)]
pub(crate) enum Sync {
    Language,
    Mode,
}

/// Returns HTML that is rendered already.
pub(crate) fn raw(html: impl Into<String>) -> Markup {
    PreEscaped(html.into())
}

/// An icon of `lib/edge/src/look/icons.svg`. It repeats words, so screen readers skip it.
pub(crate) fn icon(name: &str) -> Markup {
    html! { svg .icon aria-hidden="true" { use href=(format!("{ICONS}#{name}")) {} } }
}

/// The method of a request.
pub(crate) fn method(name: &str) -> Markup {
    html! { b class=(format!("method {}", name.to_lowercase())) { (name) } }
}

/// Code in a language of a fence. Keyboards reach what scrolls.
pub(crate) fn code(language: &str, text: &str) -> Markup {
    html! { pre tabindex="0" { code { (raw(highlight::to_html(language, text))) } } }
}

/// Code with a bar that names it.
pub(crate) fn figure(title: Markup, content: Markup) -> Markup {
    html! { figure .code { figcaption { span { (title) } } (content) } }
}

/// Panels of code, of which one is shown. Without the script they stand below each other, each under its title.
pub(crate) fn tabs(label: &str, sync: Option<Sync>, panels: &[Panel]) -> Markup {
    let sync = sync.map(|sync| match sync {
        Sync::Language => "language",
        Sync::Mode => "mode",
    });
    html! {
        div .code.tabs data-label=(label) data-sync=[sync] {
            @for Panel { id, title, content } in panels {
                div .panel id=(id) { p .panel-title { (title) } (content) }
            }
        }
    }
}

/// A heading that links to itself, though not for screen readers, which would read each heading twice.
pub(crate) fn anchor(id: &str) -> Markup {
    html! { " " a .anchor href=(format!("#{id}")) aria-hidden="true" tabindex="-1" { "#" } }
}

/// A paragraph that stands out. `tone`: `info` or `warn`.
pub(crate) fn callout(tone: &str, content: Markup) -> Markup {
    let icon = icon(if tone == "warn" { "caution" } else { tone });
    html! { div class=(format!("callout {tone}")) { (icon) div { (content) } } }
}
