//! Compresses the files of the reference page.
//!
//! `swagger-ui-dist` rather than `utoipa-swagger-ui`: the viewer is current. Compressed files make the function 4 MB
//! smaller, and a page loads a third of the bytes.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use axum::Router;
use axum::body::Body;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Request;
use swagger_ui_dist::{ApiDefinition, OpenApiSource};
use tower::ServiceExt;

const SCRIPT: &str = "swagger-ui-bundle.js";
const STYLE: &str = "swagger-ui.css";
/// Start of the comment that names the source map of a style sheet. The source map is not served.
const SOURCE_MAP: &str = "/*# sourceMappingURL=";

fn main() -> Result<(), Box<dyn Error>> {
    let script = bundled_file(SCRIPT)?;
    let style = bundled_file(STYLE)?;
    let without_source_map = style.rfind(SOURCE_MAP).and_then(|end| style.get(..end)).unwrap_or(&style);
    compress(SCRIPT, &script)?;
    compress(STYLE, without_source_map)
}

/// Reads a file of `swagger-ui-dist` through its routes, because the crate has no other access to its files.
fn bundled_file(name: &str) -> Result<String, Box<dyn Error>> {
    let routes: Router = swagger_ui_dist::generate_routes(ApiDefinition {
        uri_prefix: "/docs",
        api_definition: OpenApiSource::Uri("/openapi.json"),
        title: None,
    });
    let request = Request::get(format!("/docs/{name}")).body(Body::empty())?;
    let bytes = futures::executor::block_on(async {
        let response = routes.oneshot(request).await?;
        if !response.status().is_success() {
            return Err(format!("swagger-ui-dist has no {name}").into());
        }
        Ok::<_, Box<dyn Error>>(axum::body::to_bytes(response.into_body(), usize::MAX).await?)
    })?;
    Ok(String::from_utf8(bytes.into())?)
}

#[expect(clippy::disallowed_methods, reason = "cargo configures build scripts through the environment")]
fn compress(name: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let folder = std::env::var("OUT_DIR")?;
    let file = File::create(Path::new(&folder).join(format!("{name}.gz")))?;
    let mut encoder = GzEncoder::new(file, Compression::best());
    encoder.write_all(text.as_bytes())?;
    Ok(encoder.finish()?.sync_all()?)
}
