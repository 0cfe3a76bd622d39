//! The page and its files. Files have a hash in their names, so browsers keep them for good; the page is revalidated.

use std::collections::BTreeMap;

use domain::html::escape;
use domain::mode::Mode;
use edge::{Resource, look};
use include_dir::{Dir, File, include_dir};
use sha2::{Digest, Sha256};

use crate::bundle::{BundleError, bundle};
use crate::origin::Origin;
use crate::vocabulary;

const HTML: &str = "text/html; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
/// `Content-Security-Policy` of a file: a file by itself loads and runs nothing.
const FILE_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
const REVALIDATED: &str = "no-cache";
/// A page of another origin that opens the portal, or is opened by it, gets no hold of its window.
const OPENER_POLICY: &str = "cross-origin-opener-policy";
/// Bytes of the hash in a file's name.
const HASH_BYTES: usize = 8;

/// The band of a sandbox, above the header of every screen.
const SANDBOX_BAND: &str = "<aside class=\"sandbox warn\" aria-label=\"Mode\">Sandbox: nothing here is real</aside>\n";
/// The beginning of a sandbox's titles.
const SANDBOX_TITLE_PREFIX: &str = "Sandbox: ";

/// The page, its style sheets, and the modules of its script, of which `main.js` is the beginning.
static ASSETS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/assets");

/// The page and its files by name.
pub(crate) struct Assets {
    pub(crate) page: Resource,
    pub(crate) files: BTreeMap<String, Resource>,
}

impl Assets {
    /// Builds the page of a deployment of this mode, for an application at `origin`, which may frame it.
    pub(crate) fn new(origin: &Origin, mode: Mode) -> Result<Self, BundleError> {
        let (band, title_prefix) = match mode {
            Mode::Live => ("", ""),
            Mode::Test => (SANDBOX_BAND, SANDBOX_TITLE_PREFIX),
        };
        let script = script(title_prefix)?;
        let style = style();
        let script_name = hashed_name(&script, "js");
        let style_name = hashed_name(&style, "css");
        let icons_name = hashed_name(look::ICONS, "svg");
        let page = asset("portal.html")
            .replace("{{band}}", band)
            .replace("{{title_prefix}}", title_prefix)
            .replace("{{origin}}", &escape(&origin.to_string()))
            .replace("{{script}}", &script_name)
            .replace("{{style}}", &style_name)
            .replace("{{icons}}", &icons_name);
        let file = |text: String, media_type| Resource::new(|| text, media_type, FILE_POLICY).cached(IMMUTABLE);
        Ok(Self {
            page: Resource::new(|| page, HTML, policy(origin)).cached(REVALIDATED).header(OPENER_POLICY, "same-origin"),
            files: BTreeMap::from([
                (script_name, file(script, JAVASCRIPT)),
                (style_name, file(style, CSS)),
                (icons_name, file(look::ICONS.to_owned(), look::SVG)),
            ]),
        })
    }
}

/// The text of a file.
fn asset(name: &str) -> &'static str {
    let text = ASSETS.get_file(name).and_then(File::contents_utf8);
    text.unwrap_or_else(|| panic!("functions/portal/assets has no text {name}"))
}

/// The modules by name.
fn modules() -> impl Iterator<Item = (&'static str, &'static str)> {
    let names = ASSETS.files().filter_map(|file| file.path().to_str());
    names.filter(|name| name.ends_with(".js")).map(|name| (name, asset(name)))
}

fn script(title_prefix: &str) -> Result<String, BundleError> {
    let mut modules: BTreeMap<&str, String> = modules().map(|(name, text)| (name, text.to_owned())).collect();
    modules.insert("domain.js", vocabulary::module(title_prefix));
    bundle(modules, "main.js")
}

/// The style sheet: what the page shares with the documentation, then its own, which may change what is before.
fn style() -> String {
    let own = ["style.css", "style-forms.css", "style-data.css"].map(asset);
    [look::STYLE].into_iter().chain(own).collect()
}

/// `Content-Security-Policy` of the page. Its favicon is a `data:` URL; its icons are a file of its own origin.
fn policy(origin: &Origin) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors {origin}; require-trusted-types-for 'script'"
    )
}

fn hashed_name(text: &str, extension: &str) -> String {
    let digest = Sha256::digest(text);
    format!("{}-portal.{extension}", hex::encode(&digest[..HASH_BYTES]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most bytes of all files with gzip, as a browser loads them.
    const MOST_BYTES: usize = 60 * 1024;
    const MOST_LINES: usize = 150;

    #[test]
    fn every_module_is_used_and_small() {
        let script = script("").unwrap();
        for (name, text) in modules() {
            assert!(text.lines().count() <= MOST_LINES, "{name} is too long");
            let start = format!("const ${} = (() => {{\n", name.trim_end_matches(".js").replace('-', "_"));
            assert!(script.contains(&start), "no module imports {name}");
        }
    }

    #[tokio::test]
    async fn the_page_names_its_files_and_all_fit_the_limit() {
        use axum::extract::FromRequest;
        let request = http::Request::builder().uri("/portal").header("accept-encoding", "gzip");
        let inbound = edge::Inbound::from_request(request.body(axum::body::Body::empty()).unwrap(), &()).await.unwrap();
        for mode in Mode::ALL {
            let assets = Assets::new(&"https://app.example.com".parse().unwrap(), mode).unwrap();
            let mut bytes = 0;
            for resource in assets.files.values().chain([&assets.page]) {
                let body = resource.answer(&inbound).into_body();
                bytes += axum::body::to_bytes(body, usize::MAX).await.unwrap().len();
            }
            assert!(bytes <= MOST_BYTES, "{bytes} bytes in mode {}", mode.as_str());
        }
    }
}
