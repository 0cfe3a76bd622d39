//! The reference page: Swagger UI with the OpenAPI document. The page loads nothing from other hosts.
//!
//! The build script compresses the files of Swagger UI.

use std::collections::BTreeMap;

use edge::Resource;

use crate::layout;

/// Names of the page's files.
pub(crate) const FILES: [&str; 4] = [SCRIPT, STYLE, "reference.js", "style.css"];

const SCRIPT: &str = "swagger-ui-bundle.js";
const STYLE: &str = "swagger-ui.css";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
/// `Content-Security-Policy` of the page. Icons are `data:` URLs of the style sheet. "Try it out" calls this service.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// `Content-Security-Policy` of the page's files: a file by itself loads and runs nothing.
const FILE_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// Renders the page at its first request.
pub(crate) fn page() -> Resource {
    let head = format!(
        "<link rel=\"stylesheet\" href=\"/docs/{STYLE}\">\n<script src=\"/docs/{SCRIPT}\" defer></script>\n\
         <script src=\"/docs/reference.js\" defer></script>\n"
    );
    let main = "<h1>Reference</h1>\n<div id=\"reference\"><noscript><p>The reference needs JavaScript. \
                The OpenAPI document <a href=\"/openapi.json\">openapi.json</a> has the same content.</p></noscript></div>";
    let page = move || layout::page("Reference", layout::REFERENCE, &head, main);
    Resource::new(page, "text/html; charset=utf-8", POLICY)
}

macro_rules! gzipped {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz")).as_slice()
    };
}

/// The page's files, by name.
pub(crate) fn files() -> BTreeMap<&'static str, Resource> {
    BTreeMap::from([
        (SCRIPT, Resource::gzipped(gzipped!("swagger-ui-bundle.js"), JAVASCRIPT, FILE_POLICY)),
        (STYLE, Resource::gzipped(gzipped!("swagger-ui.css"), CSS, FILE_POLICY)),
        ("reference.js", Resource::new(|| include_str!("reference.js"), JAVASCRIPT, FILE_POLICY)),
        ("style.css", Resource::new(|| include_str!("style.css"), CSS, FILE_POLICY)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_listed_file() {
        let files = files();
        assert_eq!(files.len(), FILES.len());
        assert!(FILES.iter().all(|name| files.contains_key(name)));
    }
}
