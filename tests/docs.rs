//! The documentation: the OpenAPI document, the guides and the reference. The service serves all of their resources
//! itself.

mod pages;
mod reference;
mod webhook_addresses;

use std::collections::{BTreeMap, BTreeSet};

use compare::assert_same;

use crate::world::{Caller, Reply, World};

const DOCUMENT: &str = "/openapi.json";
const START: &str = "/docs";
/// The search page reads the index with a script.
const SEARCH_INDEX: &str = "/docs/search-index.json";
/// The resources of the OpenAPI document, as pages.
const RESOURCES: [&str; 14] = [
    "client-records",
    "clients",
    "crm-bookings",
    "crm-contacts",
    "crm-opportunities",
    "crm-workflows",
    "documentation",
    "event-feed",
    "key",
    "portal",
    "settings-keys",
    "settings-webhooks",
    "settings-workspace",
    "sign-in",
];
/// Largest answer to a caller without a key.
const MOST_BYTES: usize = 700_000;

/// Values of all attributes with this name.
fn attributes<'t>(html: &'t str, name: &str) -> Vec<&'t str> {
    let start = format!(" {name}=\"");
    html.split(start.as_str()).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

/// The text of HTML, with single spaces.
fn text_of(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        text += part.split_once('>').map_or(part, |(_, text)| text);
    }
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// URLs that a style sheet loads.
fn loads(css: &str) -> Vec<&str> {
    css.split("url(").skip(1).map(|rest| rest.trim_start_matches(['"', '\'']).split(')').next().unwrap()).collect()
}

/// Everything reachable from the start page by links, scripts and styles, by path, and the search index.
async fn crawl(caller: &Caller) -> BTreeMap<String, Reply> {
    let mut found: BTreeMap<String, Reply> = BTreeMap::new();
    // Scripts load the search index and the console.
    let mut waiting = vec![START.to_owned(), SEARCH_INDEX.to_owned(), "/docs/console.js".to_owned()];
    while let Some(path) = waiting.pop() {
        if found.contains_key(&path) {
            continue;
        }
        let reply = caller.get(&path).header("accept-encoding", "gzip").await.expect(200);
        let links = match reply.header("content-type").unwrap() {
            "text/html; charset=utf-8" => [attributes(&reply.text, "href"), attributes(&reply.text, "src")].concat(),
            "text/css; charset=utf-8" => loads(&reply.text),
            _ => Vec::new(),
        };
        for link in links.into_iter().filter(|link| !link.starts_with("data:")) {
            let own = link.starts_with('/') && !link.starts_with("//");
            assert!(own || link.starts_with('#'), "{path} refers to {link}");
            waiting.extend(own.then(|| link.split('#').next().unwrap().to_owned()));
        }
        found.insert(path, reply);
    }
    found
}

#[tokio::test]
async fn head_answers_as_get_without_a_body_for_every_page_and_the_key_set() {
    let world = World::start().await;
    let caller = world.anonymous();
    let mut paths: BTreeSet<String> = crawl(&caller).await.into_keys().collect();
    paths.extend(
        [DOCUMENT, "/.well-known/jwks.json", "/docs/nothing", "/docs/guides/nothing", "/docs/a/b/c"].map(str::to_owned),
    );
    for path in paths {
        let [head, get] = [caller.call("HEAD", &path).await, caller.get(&path).await];
        assert_eq!((head.status, head.text.as_str()), (get.status, ""), "{path}");
        for header in ["content-type", "etag", "cache-control", "content-security-policy"] {
            assert_eq!(head.header(header), get.header(header), "{header} of {path}");
        }
    }
}

#[tokio::test]
async fn the_service_serves_all_resources_of_its_pages() {
    let world = World::start().await;
    let found = crawl(&world.anonymous()).await;
    let paths: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    // The guide to the sandbox is shown where there is one.
    let guides = pages_in("functions/docs/pages").into_iter().filter(|name| !["index", "sandbox"].contains(&&**name));
    let guides = guides.map(|name| format!("/docs/guides/{name}"));
    let resources = RESOURCES.map(|name| format!("/docs/reference/{name}"));
    let own = ["/docs/events", "/docs/reference", "/docs/reference/tools"].map(str::to_owned);
    let pages: Vec<String> = guides.chain(resources).chain(own).collect();
    let files = [
        DOCUMENT,
        "/openapi-3.0.json",
        "/llms.txt",
        START,
        SEARCH_INDEX,
        "/docs/console.js",
        "/docs/icons.svg",
        "/docs/index.md",
        "/docs/listen.py",
        "/docs/make-app.json",
        "/docs/n8n-workflow.json",
        "/docs/search",
        "/docs/search.js",
        "/docs/site.js",
        "/docs/style.css",
        "/docs/zapier-app.js",
    ];
    let as_markdown = pages.iter().map(|path| format!("{path}.md"));
    let wanted = pages.iter().cloned().chain(as_markdown).chain(files.map(str::to_owned));
    assert_same("the links of the pages in functions/docs, or the list of resources here", paths, wanted);
    for (path, reply) in &found {
        let media_type = match path.rsplit_once('.').map(|(_, extension)| extension) {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("py" | "txt") => "text/plain; charset=utf-8",
            Some("md") => "text/markdown; charset=utf-8",
            Some(_) => "application/json; charset=utf-8",
            None => "text/html; charset=utf-8",
        };
        assert_eq!(reply.header("content-type"), Some(media_type), "{path}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"), "{policy}");
        for source in policy.split([';', ' ']).filter(|part| part.contains([':', '.', '*'])) {
            assert_eq!(source, "data:", "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
    }
}

#[tokio::test]
async fn a_live_deployment_shows_the_guide_to_the_sandbox_beside_it() {
    const GUIDE: &str = "/docs/guides/sandbox";
    const SANDBOX: &str = "https://sandbox.example.org";
    let (alone, beside) = (World::start().await, World::start_with_parameters(&[("OtherModeAddress", SANDBOX)]).await);
    alone.anonymous().get(GUIDE).await.refused(404, "not_found");
    let guide = beside.anonymous().get(&format!("{GUIDE}.md")).await.expect(200).text;
    let reference = format!("]({SANDBOX}/docs/reference/sandbox)");
    assert!(guide.contains(&format!("BASE={SANDBOX}\n")) && guide.contains(&reference), "{guide}");
    for (world, is_named) in [(&alone, false), (&beside, true)] {
        for path in [START, "/llms.txt", SEARCH_INDEX, "/docs/guides/errors", "/docs/guides/changes"] {
            let page = world.anonymous().get(path).await.expect(200).text;
            assert_eq!(page.contains(GUIDE), is_named, "{path}");
        }
    }
    for path in ["/docs/reference/sandbox", "/docs/reference/sandbox.md"] {
        beside.anonymous().get(path).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn a_page_is_whole() {
    let world = World::start().await;
    let found = crawl(&world.anonymous()).await;
    for (path, page) in found.iter().filter(|(_, reply)| reply.text.starts_with("<!doctype html>")) {
        assert_eq!(page.text.matches("<h1").count(), 1, "{path}");
        assert!(page.text.contains("<html lang=\"en\">") && page.text.contains("<main "), "{path}");
        assert_eq!(page.text.matches("aria-current=\"page\"").count(), 1, "{path}");
        assert!(attributes(&page.text, "href").contains(&START), "{path}");
    }
}

#[tokio::test]
async fn no_answer_is_larger_than_700_kb_with_gzip_or_without() {
    let world = World::start().await;
    let caller = world.anonymous();
    for (path, whole) in crawl(&caller).await {
        let plain = caller.get(&path).await;
        assert!(plain.bytes.max(whole.bytes) <= MOST_BYTES, "{path}: {}, {}", plain.bytes, whole.bytes);
        let encodings = [&plain, &whole].map(|reply| reply.header("content-encoding"));
        assert_eq!(encodings, [None, Some("gzip")], "{path}");
        let is_page = plain.text.starts_with("<!doctype html>") && path != "/docs/search";
        let vary = if is_page { "accept-encoding, accept" } else { "accept-encoding" };
        assert_eq!([&plain, &whole].map(|reply| reply.header("vary")), [Some(vary); 2], "{path}");
        assert_eq!(plain.header("etag"), whole.header("etag"), "{path}");
        assert_eq!(plain.expect(200).text, whole.text, "{path}");
    }
}

#[tokio::test]
async fn a_slash_behind_the_address_of_a_page_redirects_to_the_page() {
    let world = World::start().await;
    let caller = world.anonymous();
    for path in crawl(&caller).await.into_keys().filter(|path| path.starts_with(START)) {
        for accepted in ["*/*", "text/html", "text/markdown"] {
            let moved = caller.get(&format!("{path}/")).header("accept", accepted).await.expect(308);
            assert_eq!((moved.header("location"), moved.text.as_str()), (Some(path.as_str()), ""));
        }
    }
    assert_eq!(caller.get("/docs/guides/limits//").await.expect(308).header("location"), Some("/docs/guides/limits"));
    caller.get("/docs//evil.example/").await.refused(404, "unknown_path");
}

#[tokio::test]
async fn a_caller_that_prefers_markdown_gets_the_page_as_markdown() {
    let world = World::start().await;
    let caller = world.anonymous();
    for (path, page) in crawl(&caller).await.into_iter().filter(|(_, page)| page.text.starts_with("<!doctype html>")) {
        let markdown = if path == START { "/docs/index.md".to_owned() } else { format!("{path}.md") };
        let markdown = if path == "/docs/search" { page.text.clone() } else { caller.get(&markdown).await.text };
        for (accepted, wanted) in [
            ("text/markdown", &markdown),
            ("text/markdown, text/html, */*", &markdown),
            ("text/html, text/markdown;q=0.5", &page.text),
            ("text/html,application/xhtml+xml,*/*;q=0.8", &page.text),
            ("*/*", &page.text),
        ] {
            let answer = caller.get(&path).header("accept", accepted).await.expect(200);
            assert_eq!(answer.text, *wanted, "{path}: {accepted}");
            assert_eq!(answer.header("vary"), page.header("vary"), "{path}: {accepted}");
        }
    }
}

#[tokio::test]
async fn guides_for_operators_are_not_served_and_no_page_links_to_one() {
    let world = World::start().await;
    let found = crawl(&world.anonymous()).await;
    for name in pages_in("infra/guides") {
        let path = format!("/docs/guides/{name}");
        world.anonymous().get(&path).await.refused(404, "not_found");
        for (page, reply) in &found {
            assert!(!reply.text.contains(&path), "{page} names {path}");
        }
    }
}

/// The names of the pages in a folder of the repository.
fn pages_in(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(format!("{}/../{folder}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

#[tokio::test]
async fn a_missing_page_is_answered_with_the_usual_404() {
    let world = World::start().await;
    let caller = world.anonymous();
    for path in
        ["/docs/console", "/docs/index.html", "/docs/guides/limits.txt", "/docs/guides/%2e%2e", "/docs/reference/x"]
    {
        caller.get(path).await.refused(404, "not_found");
        caller.get(path).header("accept", "*/*").await.refused(404, "not_found");
    }
    for path in ["/docs/guides/", "/docs/guides/limits/more", "/docs/a/b/c"] {
        let error = caller.get(path).header("accept", "*/*").await.refused(404, "unknown_path");
        assert_eq!(error.header("vary"), Some("accept"), "{path}");
    }
    for path in ["/docs/nothing", "/docs/guides/", "/docs/guides/nothing", "/docs/reference/nothing", "/docs/a/b/c"] {
        let page = caller.get(path).header("accept", "text/html,*/*;q=0.8").await.expect(404);
        assert_eq!(page.header("vary"), Some("accept-encoding, accept"), "{path}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert_eq!(page.header("cache-control"), Some("no-store"), "{path}");
        for page_of_the_site in RESOURCES
            .map(|name| format!("/docs/reference/{name}"))
            .iter()
            .chain([START, "/docs/search"].map(str::to_owned).iter())
        {
            assert!(page.text.contains(&format!("href=\"{page_of_the_site}\"")), "{path}: {page_of_the_site}");
        }
    }
    // Only the documentation has pages for browsers.
    for path in ["/openapi.yaml", "/documentation", "/v1/nothing"] {
        caller.get(path).header("accept", "text/html").await.refused(404, "unknown_path");
    }
    let other = caller.call("DELETE", START).await.refused(405, "method_not_allowed");
    assert_eq!(other.header("allow"), Some("GET, HEAD"));
}
