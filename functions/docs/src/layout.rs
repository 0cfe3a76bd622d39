//! The frame of all pages: head, bar, navigation and footer.

use edge::routes::VERSION;
use maud::{Markup, html};

use crate::deployment::Deployment;
use crate::markdown;
use crate::page::{Form, Page, Place};
use crate::parts::{self, icon, raw};
use crate::site::{EVENTS, Group, REFERENCE, SEARCH, START, SUMMARY};
use crate::start;

/// The entrances in the bar.
const PARTS: [(&str, &str); 4] = [
    ("Guides", "/docs/guides/getting-started"),
    ("Reference", REFERENCE),
    ("Events", EVENTS),
    ("Changes", "/docs/guides/changes"),
];

/// The pages, and the deployment that they describe.
pub(crate) struct Site {
    pub(crate) pages: Vec<Page>,
    pub(crate) deployment: Deployment,
}

impl Site {
    /// Renders a page, with links to the pages before and after it.
    pub(crate) fn page(&self, at: usize) -> String {
        let page = &self.pages[at];
        let content = match &page.form {
            Form::Start => start::render(page),
            Form::Guide => self.guide(page, at),
            Form::Sheet { sections, .. } => html! { div .sheet { (sections) (self.near(at)) } },
        };
        self.frame(&page.title, &page.path, Some(page), content)
    }

    /// Renders the search page, which reads the index with a script.
    pub(crate) fn search_page(&self) -> String {
        let content = html! {
            article .prose {
                h1 { "Search" }
                form .find action=(SEARCH) role="search" {
                    input type="search" name="q" aria-label="Search the documentation" autocomplete="off" required;
                    button .main { "Search" }
                }
                noscript { p { "The search needs JavaScript. " a href="#pages" { "All pages" } " are listed on this page, too." } }
                p #search-status .soft role="status" {}
                ol #results .results {}
            }
            script src="/docs/search.js" defer {}
        };
        self.frame("Search", SEARCH, None, content)
    }

    /// Renders the page for an address under `/docs` that leads nowhere.
    pub(crate) fn missing_page(&self) -> String {
        let content = html! {
            article .prose {
                h1 { "There is no such page" }
                p .lead { "The address is out of date, or was not copied as a whole. The navigation has all pages." }
                p { a .button.main href=(START) { "Start page" } " " a .button href=(SEARCH) { "Search" } }
            }
        };
        self.frame("There is no such page", "", None, content)
    }

    fn guide(&self, page: &Page, at: usize) -> Markup {
        let contents = markdown::contents(&page.text);
        let link = |heading: &markdown::Heading| html! { a href=(format!("#{}", heading.id)) { (heading.words) } };
        html! {
            div .guide {
                @if !contents.is_empty() {
                    nav .here aria-label="On this page" data-spy {
                        h2 { "On this page" }
                        ul {
                            @for (section, below) in &contents {
                                li {
                                    (link(section))
                                    @if !below.is_empty() { ul { @for part in below { li { (link(part)) } } } }
                                }
                            }
                        }
                    }
                }
                div {
                    article .prose { (crumb(page)) (raw(markdown::to_html(&page.text))) }
                    (self.near(at))
                }
            }
        }
    }

    /// Links to the pages before and after a page.
    fn near(&self, at: usize) -> Markup {
        let link = |label: &str, page: &Page| html! { a href=(page.path) { span { (label) } (page.name) } };
        let before = at.checked_sub(1).map(|before| link("Previous", &self.pages[before]));
        let after = self.pages.get(at + 1).map(|after| link("Next", after));
        html! { nav .near aria-label="Neighbouring pages" { (before.unwrap_or_default()) (after.unwrap_or_default()) } }
    }

    fn frame(&self, title: &str, path: &str, page: Option<&Page>, content: Markup) -> String {
        let is_start = page.is_some_and(|page| matches!(page.form, Form::Start));
        let is_in = |part: &str| match page {
            Some(page) if PARTS.iter().any(|(_, entrance)| *entrance == page.path) => part == page.path,
            Some(page) if page.group.is_reference() => part == REFERENCE,
            Some(page) if page.group != Group::Start => part == PARTS[0].1,
            _ => false,
        };
        let html = html! {
            (raw("<!doctype html>\n"))
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) " · Partner API" }
                    link rel="icon" href="data:,";
                    link rel="stylesheet" href="/docs/style.css";
                    // Without `defer`, so that tabs do not jump after the first paint.
                    script src="/docs/site.js" {}
                    @if let Some(page) = page {
                        meta name="description" content=(markdown::words_of(&page.about()));
                        link rel="alternate" type="text/markdown" href=(page.markdown_path());
                    }
                }
                body class=[is_start.then_some("start-page")] data-base=(self.deployment.base) {
                    a .skip href="#main" { "Skip to content" }
                    header .top {
                        a .menu.button.bare href="#pages" { (icon("menu")) span .unseen { "All pages" } }
                        a .brand href=(START) { "Partner API" }
                        nav .parts aria-label="Parts" {
                            ul {
                                @for (name, part) in PARTS {
                                    li { a href=(part) aria-current=[is_in(part).then_some("true")] { (name) } }
                                }
                            }
                        }
                        a .seek.button href=(SEARCH) aria-current=[(path == SEARCH).then_some("page")] { (icon("search")) span { "Search" } }
                    }
                    div .frame {
                        (self.navigation(page))
                        main #main tabindex="-1" { (content) }
                    }
                    footer .foot {
                        ul {
                            li { "Version " (VERSION) }
                            li { a href="/openapi.json" { "OpenAPI 3.1" } }
                            li { a href="/openapi-3.0.json" { "OpenAPI 3.0" } }
                            li { a href=(SUMMARY) { "llms.txt" } }
                        }
                    }
                }
            }
        };
        // Sections of the reference have the keys of the document's examples.
        self.deployment.fill_in(&html.into_string())
    }

    /// All pages by group, with the places of the page that is shown.
    fn navigation(&self, current: Option<&Page>) -> Markup {
        let link = |page: &Page| {
            let places = match &page.form {
                Form::Sheet { places, .. } if current.is_some_and(|current| current.path == page.path) => &places[..],
                _ => &[],
            };
            let is_current = current.is_some_and(|current| current.path == page.path);
            html! {
                li {
                    a href=(page.path) aria-current=[is_current.then_some("page")] { (page.name) }
                    @if !places.is_empty() { ul { @for place in places { li { (place_link(place)) } } } }
                }
            }
        };
        html! {
            nav #pages tabindex="-1" aria-label="All pages" data-spy {
                a .close href="#main" { "Close the list" }
                @for group in Group::ALL {
                    div {
                        h2 { (group.title()) }
                        ul { @for page in self.pages.iter().filter(|page| page.group == group) { (link(page)) } }
                    }
                }
            }
        }
    }
}

fn place_link(place: &Place) -> Markup {
    html! {
        a href=(format!("#{}", place.id)) {
            @if let Some(method) = place.method { (parts::method(method)) (place.name) } @else { code { (place.name) } }
        }
    }
}

/// The line over a title: the page's group, and the page as Markdown.
pub(crate) fn crumb(page: &Page) -> Markup {
    html! { p .crumb { (page.group.title()) a href=(page.markdown_path()) { "This page as Markdown" } } }
}
