//! The start page: its Markdown, arranged in sections with a picture of how everything flows.

use maud::{Markup, html};

use crate::markdown;
use crate::page::Page;
use crate::parts::{icon, raw};

/// How requests, events and the feed flow: a wide picture, and a tall one for phones.
const PICTURE: &str = include_str!("../assets/flow.svg");
/// The icons of the areas, in their order.
const AREAS: [&str; 4] = ["people", "calendar", "hook", "enter"];

/// Renders the page. Its sections are laid out by their order: the entrance, areas, picture, steps beside habits and
/// changes, and files.
pub(crate) fn render(page: &Page) -> Markup {
    let mut sections = page.text.split("\n## ");
    let hero = sections.next().unwrap_or_default();
    let [areas, flow, steps, habits, changes, tools] =
        std::array::from_fn(|_| sections.next().map(section).unwrap_or_default());
    html! {
        div .start {
            section .hero { (entrance(hero)) }
            section .areas-of-use { (with_icons(&areas)) }
            section .flow { (raw(flow.replacen("<ul>", &format!("{PICTURE}\n<ul>"), 1))) }
            div .two { section { (raw(steps)) } div { section .rows { (raw(habits)) } section .rows { (raw(changes)) } } }
            section .rows.files { (raw(tools)) }
        }
    }
}

fn section(text: &str) -> String {
    markdown::to_html(&format!("## {text}"))
}

/// The words, the ways in, and a request beside its answer.
fn entrance(text: &str) -> Markup {
    let html = markdown::to_html(&format!("# {}", text.trim_start_matches("# ")));
    let (words, rest) = html.split_once("<ul>").expect("the start page lists the ways in");
    let (ways, pair) = rest.split_once("</ul>").expect("a list ends");
    html! {
        div .words { (raw(words)) }
        ul .ways aria-label="Where to begin" { (raw(ways)) }
        div .pair { (raw(pair)) }
    }
}

/// Puts the icons of the areas before the items of a list.
fn with_icons(html: &str) -> Markup {
    let mut parts = html.split("<li>");
    let first = parts.next().unwrap_or_default();
    html! { (raw(first)) @for (part, name) in parts.zip(AREAS) { (raw("<li>")) (icon(name)) (raw(part)) } }
}
