//! The pages of the documentation: links, sizes, addresses, Markdown, and the summary.

use std::collections::{BTreeMap, BTreeSet};

use super::{SEARCH_INDEX, attributes, crawl, text_of};
use crate::world::{Reply, World};

/// Largest page with its style sheet and its scripts, with gzip.
const MOST_BYTES_TO_LOAD: usize = 40_000;
/// All files that pages load, and the search index, without gzip.
const MOST_ASSET_BYTES: usize = 64 * 1024;
const MOST_INDEX_BYTES: usize = 200 * 1024;

fn html_pages(found: &BTreeMap<String, Reply>) -> impl Iterator<Item = (&String, &Reply)> {
    found.iter().filter(|(_, reply)| reply.text.starts_with("<!doctype html>"))
}

fn markdown_pages(found: &BTreeMap<String, Reply>) -> impl Iterator<Item = (&String, &Reply)> {
    found.iter().filter(|(path, _)| path.ends_with(".md"))
}

/// Links in Markdown.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap())
}

#[tokio::test]
async fn every_link_leads_to_a_page_and_to_a_heading_of_the_page() {
    let world = World::start().await;
    let (found, base) = (crawl(&world.anonymous()).await, world.base_url());
    let icons = found.iter().filter(|(path, _)| path.ends_with(".svg"));
    let ids: BTreeMap<&String, Vec<&str>> =
        html_pages(&found).chain(icons).map(|(path, page)| (path, attributes(&page.text, "id"))).collect();
    for (path, page) in html_pages(&found) {
        let own: BTreeSet<_> = ids[path].iter().collect();
        assert_eq!(own.len(), ids[path].len(), "{path} has an id twice");
        for link in attributes(&page.text, "href") {
            let Some((target, section)) = link.split_once('#') else { continue };
            let target = if target.is_empty() { path.clone() } else { target.to_owned() };
            assert!(ids[&target].contains(&section), "{path}: {link}");
        }
    }
    for (path, page) in markdown_pages(&found) {
        for link in links(&page.text) {
            let to_self = link.strip_prefix('#').map(|_| format!("{path}{link}"));
            let link = to_self.as_deref().or(link.strip_prefix(&base)).unwrap_or_else(|| panic!("{path}: {link}"));
            let (target, section) = link.split_once('#').unwrap_or((link, ""));
            assert!(found.contains_key(target), "{path}: {link}");
            let page = target.trim_end_matches(".md").trim_end_matches("/index");
            assert!(section.is_empty() || ids[&page.to_owned()].contains(&section), "{path}: {link}");
        }
    }
}

#[tokio::test]
async fn every_page_is_there_as_markdown_with_the_address_of_the_api() {
    let world = World::start().await;
    let (found, base) = (crawl(&world.anonymous()).await, world.base_url());
    for (path, page) in html_pages(&found).filter(|(path, _)| *path != "/docs/search") {
        let markdown = if path == "/docs" { "/docs/index.md".to_owned() } else { format!("{path}.md") };
        let links = attributes(&page.text, "href");
        assert_eq!(links.iter().filter(|link| **link == markdown).count(), 2, "{path}: in the head and at the end");
        let title = page.text.split_once("<title>").unwrap().1.split("</title>").next().unwrap();
        let title = title.strip_suffix(" · Partner API").unwrap_or(title);
        assert!(found[&markdown].text.starts_with(&format!("# {title}\n\n")), "{markdown}");
    }
    assert!(found["/docs/index.md"].text.contains(&format!("The address of the API is `{base}`")));
    assert!(text_of(&found["/docs/guides/getting-started"].text).contains(&format!("BASE={base} KEY=")));
    assert!(found["/docs/reference/clients"].text.contains(&format!("{base}/v1/clients")));
}

#[tokio::test]
async fn no_page_names_another_address_of_the_api_or_of_a_reader_s_machine() {
    let world = World::start().await;
    let (found, base) = (crawl(&world.anonymous()).await, world.base_url());
    let summary = found.iter().filter(|(path, _)| *path == "/llms.txt");
    for kit in ["listen.py", "make-app.json", "n8n-workflow.json", "zapier-app.js"] {
        let kit = &found[&format!("/docs/{kit}")].text;
        assert!(kit.contains(&base) && !kit.contains("api.example.com"), "{kit}");
    }
    for (path, page) in html_pages(&found).chain(markdown_pages(&found)).chain(summary) {
        let text = page.text.replace(&base, "");
        for other in ["api.example.com", "127.0.0.1", "localhost", "[::1]"] {
            assert!(!text.contains(other), "{path} names {other}");
        }
    }
}

#[tokio::test]
async fn a_page_loads_at_most_40_kb_with_its_style_and_scripts() {
    // A sandbox has more pages.
    for mode in ["live", "test"] {
        let world = World::start_with_parameters(&[("Mode", mode)]).await;
        let found = crawl(&world.anonymous()).await;
        let size = |path: &str| found[path].bytes;
        for (path, page) in html_pages(&found) {
            let styles = attributes(&page.text, "href").into_iter().filter(|link| link.ends_with(".css"));
            let loaded: usize = styles.chain(attributes(&page.text, "src")).map(size).sum();
            assert!(page.bytes + loaded <= MOST_BYTES_TO_LOAD, "{path}: {} and {loaded}", page.bytes);
        }
        // With what readers load who search and send requests.
        let is_kit = |path: &String| path.ends_with("zapier-app.js");
        let assets = found.iter().filter(|(path, _)| path.ends_with(".css") || path.ends_with(".js") && !is_kit(path));
        let (sent, plain) = assets.fold((0, 0), |(sent, plain), (_, one)| (sent + one.bytes, plain + one.text.len()));
        assert!(sent <= MOST_BYTES_TO_LOAD && plain <= MOST_ASSET_BYTES, "{sent}, {plain}");
        assert!(found[SEARCH_INDEX].text.len() <= MOST_INDEX_BYTES, "{}", found[SEARCH_INDEX].text.len());
    }
}

#[tokio::test]
async fn the_search_index_has_every_section() {
    let world = World::start().await;
    let found = crawl(&world.anonymous()).await;
    let indexed: BTreeSet<&str> =
        found[SEARCH_INDEX].body.as_array().unwrap().iter().map(|entry| entry[2].as_str().unwrap()).collect();
    let mut wanted = BTreeSet::new();
    for (path, page) in html_pages(&found).filter(|(path, _)| *path != "/docs/search") {
        wanted.insert(path.clone());
        let sections = page.text.split("<h2 id=\"").skip(1);
        wanted.extend(sections.map(|rest| format!("{path}#{}", rest.split('"').next().unwrap())));
    }
    assert_eq!(indexed, wanted.iter().map(String::as_str).collect());
}

#[tokio::test]
async fn the_summary_has_every_page_with_a_line_on_it() {
    let world = World::start().await;
    let (found, base) = (crawl(&world.anonymous()).await, world.base_url());
    let summary = &found["/llms.txt"].text;
    assert!(summary.starts_with("# Partner API\n\n> "), "{summary}");
    for (path, _) in markdown_pages(&found).filter(|(path, _)| *path != "/docs/index.md") {
        let line = summary.lines().find(|line| line.contains(&format!("]({base}{path})"))).unwrap();
        assert!(line.split("): ").nth(1).is_some_and(|about| about.ends_with('.')), "{line}");
    }
}
