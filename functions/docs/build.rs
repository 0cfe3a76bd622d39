//! Packs the files of the reference page, three quarters of which are air: neither the function nor who loads the page
//! is to carry them.

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
/// Says where the source map of a style sheet is, which is not served.
const SOURCE_MAP: &str = "/*# sourceMappingURL=";

fn main() -> Result<(), Box<dyn Error>> {
    let script = bundled(SCRIPT)?;
    let style = bundled(STYLE)?;
    let plain = style.rfind(SOURCE_MAP).and_then(|end| style.get(..end)).unwrap_or(&style);
    pack(SCRIPT, &script)?;
    pack(STYLE, plain)
}

/// A file of the crate's. It hands its files out over routes of its own and in no other way.
fn bundled(name: &str) -> Result<String, Box<dyn Error>> {
    let routes: Router = swagger_ui_dist::generate_routes(ApiDefinition {
        uri_prefix: "/docs",
        api_definition: OpenApiSource::Uri("/openapi.json"),
        title: None,
    });
    let request = Request::get(format!("/docs/{name}")).body(Body::empty())?;
    let bytes = futures::executor::block_on(async {
        let answer = routes.oneshot(request).await?;
        if !answer.status().is_success() {
            return Err(format!("the viewer has no {name}").into());
        }
        Ok::<_, Box<dyn Error>>(axum::body::to_bytes(answer.into_body(), usize::MAX).await?)
    })?;
    Ok(String::from_utf8(bytes.into())?)
}

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts by the environment")]
fn pack(name: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let folder = std::env::var("OUT_DIR")?;
    let file = File::create(Path::new(&folder).join(format!("{name}.gz")))?;
    let mut packing = GzEncoder::new(file, Compression::best());
    packing.write_all(text.as_bytes())?;
    Ok(packing.finish()?.sync_all()?)
}
