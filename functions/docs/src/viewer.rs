//! The reference page: Swagger UI, from the crate that brings it along, on the document. No other host is asked for anything.

use std::collections::BTreeMap;

use axum::body::Body;
use bytes::Bytes;
use http::Request;
use runtime::BoxError;
use swagger_ui_dist::{ApiDefinition, OpenApiSource};
use tower::ServiceExt;

use crate::layout;
use crate::resource::Resource;

/// Names of the page's files.
pub(crate) const FILES: [&str; 4] = [SCRIPT, STYLE, "reference.js", "style.css"];

const SCRIPT: &str = "swagger-ui-bundle.js";
const STYLE: &str = "swagger-ui.css";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
/// Says where the source map of a style sheet is, which is not served.
const SOURCE_MAP: &str = "/*# sourceMappingURL=";

/// Scripts and styles from here alone; icons are part of the style sheet; what is tried out goes to the service itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// A file does nothing by itself.
const FILE_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// The page.
pub(crate) fn page() -> Resource {
    let head = format!(
        "<link rel=\"stylesheet\" href=\"/docs/{STYLE}\">\n<script src=\"/docs/{SCRIPT}\" defer></script>\n\
         <script src=\"/docs/reference.js\" defer></script>\n"
    );
    let main = "<h1>Reference</h1>\n<div id=\"reference\"><noscript><p>The reference needs JavaScript. \
                The same is in <a href=\"/openapi.json\">openapi.json</a>.</p></noscript></div>";
    Resource::new(layout::page("Reference", layout::REFERENCE, &head, main), "text/html; charset=utf-8", POLICY)
}

/// The page's files, by name.
pub(crate) async fn files() -> Result<BTreeMap<&'static str, Resource>, BoxError> {
    let style = bundled(STYLE).await?;
    let text = std::str::from_utf8(&style)?;
    let plain = style.slice(..text.rfind(SOURCE_MAP).unwrap_or(text.len()));
    Ok(BTreeMap::from([
        (SCRIPT, Resource::new(bundled(SCRIPT).await?, JAVASCRIPT, FILE_POLICY)),
        (STYLE, Resource::new(plain, CSS, FILE_POLICY)),
        ("reference.js", Resource::new(include_str!("reference.js"), JAVASCRIPT, FILE_POLICY)),
        ("style.css", Resource::new(include_str!("style.css"), CSS, FILE_POLICY)),
    ]))
}

/// A file of the crate's. It hands its files out over routes of its own and in no other way.
async fn bundled(name: &str) -> Result<Bytes, BoxError> {
    let routes = swagger_ui_dist::generate_routes(ApiDefinition {
        uri_prefix: layout::REFERENCE,
        api_definition: OpenApiSource::Uri("/openapi.json"),
        title: None,
    });
    let request = Request::get(format!("{}/{name}", layout::REFERENCE)).body(Body::empty())?;
    let answer = routes.oneshot(request).await?;
    if !answer.status().is_success() {
        return Err(format!("the viewer has no {name}").into());
    }
    Ok(axum::body::to_bytes(answer.into_body(), usize::MAX).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_file_is_there_under_its_name() {
        let files = files().await.unwrap();
        assert_eq!(files.keys().copied().collect::<Vec<_>>().len(), FILES.len());
        assert!(FILES.iter().all(|name| files.contains_key(name)));
    }
}
