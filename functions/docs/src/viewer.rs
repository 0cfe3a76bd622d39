//! The reference page: Swagger UI with the OpenAPI document. The page loads nothing from other hosts.
//!
//! `swagger-ui-dist` rather than `utoipa-swagger-ui`: the viewer is current.

use std::convert::identity;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use edge::Resource;
use futures::FutureExt;
use http::Request;
use swagger_ui_dist::{ApiDefinition, OpenApiSource};
use tower::ServiceExt;

use crate::layout;
use crate::site::{FILES, REFERENCE};

const SCRIPT: &str = FILES[0];
const STYLE: &str = FILES[1];
/// Start of a style sheet's comment that names its source map.
const SOURCE_MAP: &[u8] = b"/*# sourceMappingURL=";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
/// `Content-Security-Policy` of the page. Icons are `data:` URLs of the style sheet. "Try it out" calls this service.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// `Content-Security-Policy` of the page's files: a file by itself loads and runs nothing.
pub(crate) const FILE_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// Creates the page and its files, by path.
pub(crate) fn resources() -> impl Iterator<Item = (String, Resource)> {
    let page = Resource::new(page, "text/html; charset=utf-8", POLICY);
    let files = [
        Resource::new(|| bundled(SCRIPT), JAVASCRIPT, FILE_POLICY),
        Resource::new(bundled_style, CSS, FILE_POLICY),
        Resource::new(|| include_str!("reference.js"), JAVASCRIPT, FILE_POLICY),
        Resource::new(|| include_str!("style.css"), CSS, FILE_POLICY),
    ];
    let files = FILES.iter().zip(files).map(|(name, file)| (format!("{REFERENCE}/{name}"), file));
    [(REFERENCE.to_owned(), page)].into_iter().chain(files)
}

fn page() -> String {
    let head = format!(
        "<link rel=\"stylesheet\" href=\"/docs/{STYLE}\">\n<script src=\"/docs/{SCRIPT}\" defer></script>\n\
         <script src=\"/docs/reference.js\" defer></script>\n"
    );
    let main = "<h1>Reference</h1>\n<div id=\"reference\"><noscript><p>The reference needs JavaScript. \
                The OpenAPI document <a href=\"/openapi.json\">openapi.json</a> has the same content.</p></noscript></div>";
    layout::page("Reference", REFERENCE, &head, main)
}

/// Reads a file of `swagger-ui-dist` through its routes, because the crate has no other access to its files. The routes
/// answer without waiting.
fn bundled(name: &'static str) -> Bytes {
    let routes: Router = swagger_ui_dist::generate_routes(ApiDefinition {
        uri_prefix: "/docs",
        api_definition: OpenApiSource::Uri("/openapi.json"),
        title: None,
    });
    let read = async {
        let request = Request::get(format!("/docs/{name}")).body(Body::empty()).ok()?;
        let response = routes.oneshot(request).await.ok()?;
        to_bytes(response.into_body(), usize::MAX).await.ok()
    };
    read.now_or_never().and_then(identity).expect("Swagger UI has its files in memory")
}

/// Swagger UI's style sheet, without the comment that names its source map: the source map is not served.
fn bundled_style() -> Bytes {
    let style = bundled(STYLE);
    let source_map = style.windows(SOURCE_MAP.len()).rposition(|text| text == SOURCE_MAP);
    style.slice(..source_map.unwrap_or(style.len()))
}
