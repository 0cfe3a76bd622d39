//! The frame of all pages: head, navigation and footer.

use domain::html::escape;

use crate::markdown;
use crate::page::{Page, Part};
use crate::site::{SEARCH, START, SUMMARY, VERSION};

/// Renders a page, with links to the pages before and after it.
pub(crate) fn page(pages: &[Page], at: usize) -> String {
    let page = &pages[at];
    let link = |label: &str, to: &Page| format!("<li>{label}: <a href=\"{}\">{}</a></li>", to.path, escape(&to.title));
    let before = at.checked_sub(1).map(|before| link("Previous", &pages[before]));
    let after = pages.get(at + 1).map(|after| link("Next", after));
    let neighbours: String = before.into_iter().chain(after).collect();
    let source = page.markdown_path();
    let head = format!(
        "<meta name=\"description\" content=\"{}\">\n<link rel=\"alternate\" type=\"text/markdown\" href=\"{source}\">\n",
        escape(&markdown::words_of(&page.about())),
    );
    let main = format!(
        "<article>\n{}</article>\n\
         <nav class=\"neighbours\" aria-label=\"Neighbouring pages\"><ul>{neighbours}</ul>\
         <p><a href=\"{source}\">This page as Markdown</a></p></nav>",
        markdown::to_html(&page.text),
    );
    frame(pages, &page.title, &page.path, &head, &main)
}

/// Renders the search page, which reads the index with a script.
pub(crate) fn search_page(pages: &[Page]) -> String {
    let main = "<article>\n<h1>Search</h1>\n<noscript><p>The search needs JavaScript. <a href=\"#pages\">All pages</a> \
                are listed on this page, too.</p></noscript>\n\
                <p id=\"search-status\" role=\"status\"></p>\n<ol id=\"results\"></ol>\n</article>";
    frame(pages, "Search", SEARCH, "<script src=\"/docs/search.js\" defer></script>\n", main)
}

fn frame(pages: &[Page], title: &str, current: &str, head: &str, main: &str) -> String {
    let title = if current == START { escape(title) } else { format!("{} · Partner API", escape(title)) };
    let link = |path: &str, name: &str| {
        let mark = if path == current { " aria-current=\"page\"" } else { "" };
        format!("<li><a href=\"{path}\"{mark}>{}</a></li>", escape(name))
    };
    let links = |part: Part| -> String {
        pages.iter().filter(|page| page.part == part).map(|page| link(&page.path, &page.title)).collect()
    };
    let (start, guides, reference) = (links(Part::Start), links(Part::Guides), links(Part::Reference));
    let search = link(SEARCH, "Search");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/docs/style.css\">\n\
         <script src=\"/docs/page.js\" defer></script>\n{head}</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to content</a>\n\
         <header>\n<p><a href=\"{START}\">Partner API</a></p>\n\
         <form action=\"{SEARCH}\" role=\"search\"><input type=\"search\" name=\"q\" aria-label=\"Search the documentation\" \
         placeholder=\"Search\" autocomplete=\"off\" required><button>Search</button></form>\n\
         <p class=\"menu\"><a href=\"#pages\">All pages</a></p>\n</header>\n\
         <main id=\"main\" tabindex=\"-1\">\n{main}\n</main>\n\
         <nav id=\"pages\" tabindex=\"-1\" aria-label=\"All pages\">\n<ul>{start}{search}</ul>\n\
         <h2>Guides</h2>\n<ul>{guides}</ul>\n<h2>Reference</h2>\n<ul>{reference}</ul>\n</nav>\n\
         <footer><p>Version {VERSION}. OpenAPI document: <a href=\"/openapi.json\">openapi.json</a>, \
         <a href=\"/openapi-3.0.json\">in OpenAPI 3.0</a>. Summary for language models: <a href=\"{SUMMARY}\">llms.txt</a></p>\
         </footer>\n</body>\n</html>\n"
    )
}
