//! The frame of all pages: head, navigation and footer.

use domain::html::escape;

use crate::site::{GUIDES, REFERENCE, VERSION};

/// Renders an HTML page. `current_path` is the path of the page, `head` is added to its head, `main` is its content.
pub(crate) fn page(title: &str, current_path: &str, head: &str, main: &str) -> String {
    let title = escape(title);
    let link = |path: &str, name: &str| {
        let current = if path == current_path { " aria-current=\"page\"" } else { "" };
        format!("<li><a href=\"{path}\"{current}>{name}</a></li>")
    };
    let guides: String = GUIDES.iter().map(|guide| link(&guide.path(), guide.title)).collect();
    let links = link(REFERENCE, "Reference") + &guides;
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} · Partner API</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/docs/style.css\">\n{head}</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to content</a>\n\
         <header>\n<p><a href=\"{REFERENCE}\">Partner API</a></p>\n\
         <nav aria-label=\"Documentation\"><ul>{links}</ul></nav>\n</header>\n\
         <main id=\"main\">\n{main}\n</main>\n\
         <footer><p>Version {VERSION}. OpenAPI document: <a href=\"/openapi.json\">openapi.json</a>, \
         <a href=\"/openapi-3.0.json\">in OpenAPI 3.0</a></p></footer>\n\
         </body>\n</html>\n"
    )
}
