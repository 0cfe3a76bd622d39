//! Contents of the documentation that do not depend on the OpenAPI document: its version, guides, kits and assets.

use edge::look;

/// Name of the product.
pub(crate) const NAME: &str = "Partner API";

/// Path of the start page. All other pages are below it.
pub(crate) const START: &str = "/docs";
/// Path of the overview of the reference.
pub(crate) const REFERENCE: &str = "/docs/reference";
/// Path of the event catalog.
pub(crate) const EVENTS: &str = "/docs/events";
/// Path of the page about the tools of assistants.
pub(crate) const TOOLS: &str = "/docs/reference/tools";
/// Path of the search page.
pub(crate) const SEARCH: &str = "/docs/search";
/// Path of the icons of all pages.
pub(crate) const ICONS: &str = "/docs/icons.svg";
/// Path of the summary for language models (llmstxt.org).
pub(crate) const SUMMARY: &str = "/llms.txt";

/// The address of the API in all texts. Pages show the address of the deployment instead.
pub(crate) const EXAMPLE_BASE: &str = "https://api.example.com";
/// The address of the sandbox in all texts.
pub(crate) const EXAMPLE_SANDBOX: &str = "https://sandbox.example.com";
/// Path of the guide to the sandbox.
pub(crate) const SANDBOX_GUIDE: &str = "/docs/guides/sandbox";

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const MARKDOWN: &str = "text/markdown; charset=utf-8";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

/// A file of the documentation.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) media_type: &'static str,
    /// The texts that make up the file.
    parts: &'static [&'static str],
}

macro_rules! file {
    ($folder:literal, $name:literal, $media_type:expr) => {
        File { name: $name, media_type: $media_type, parts: &[include_str!(concat!("../", $folder, "/", $name))] }
    };
}

/// All kits, which integrators run or import: a script that passes the event feed on to a local receiver, and kits for
/// automation platforms. Browsers show a script in Python as text. `tests/verification` and `tests/kits` run them.
pub(crate) static KITS: [File; 4] = [
    file!("kits", "listen.py", TEXT),
    file!("kits", "n8n-workflow.json", edge::reply::JSON),
    file!("kits", "zapier-app.js", JAVASCRIPT),
    file!("kits", "make-app.json", edge::reply::JSON),
];

/// Style of the frame around all pages.
const FRAME_STYLE: &str = include_str!("../assets/frame.css");
/// Style of guides, of the reference and of the start page.
const CONTENT_STYLE: &str = include_str!("../assets/content.css");

/// All files that pages load. The style sheet follows the one that the portal has, too.
pub(crate) static ASSETS: [File; 5] = [
    File { name: "style.css", media_type: CSS, parts: &[look::STYLE, FRAME_STYLE, CONTENT_STYLE] },
    File { name: "icons.svg", media_type: look::SVG, parts: &[look::ICONS] },
    file!("assets", "site.js", JAVASCRIPT),
    file!("assets", "search.js", JAVASCRIPT),
    file!("assets", "console.js", JAVASCRIPT),
];

/// Name of the file that the search page reads.
pub(crate) const SEARCH_INDEX: &str = "search-index.json";

impl File {
    /// Path at which the file is served.
    pub(crate) fn path(&self) -> String {
        format!("{START}/{}", self.name)
    }

    pub(crate) fn text(&self) -> String {
        self.parts.concat()
    }
}

/// A group of pages in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Start,
    Receive,
    Build,
    Rules,
    Reference,
    Application,
}

impl Group {
    pub(crate) const ALL: [Self; 6] =
        [Self::Start, Self::Receive, Self::Build, Self::Rules, Self::Reference, Self::Application];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Start => "Start",
            Self::Receive => "Receive events",
            Self::Build => "Build",
            Self::Rules => "Rules",
            Self::Reference => "Reference",
            Self::Application => "For the application",
        }
    }

    /// Returns true for the pages that are rendered from the OpenAPI document.
    pub(crate) fn is_reference(self) -> bool {
        matches!(self, Self::Reference | Self::Application)
    }
}

/// A guide: its name in the path, its group, and its Markdown.
pub(crate) struct Guide {
    pub(crate) name: &'static str,
    pub(crate) group: Group,
    pub(crate) text: &'static str,
}

macro_rules! guides {
    ($($group:ident: $($name:literal)*;)*) => {
        [$($(Guide { name: $name, group: Group::$group, text: include_str!(concat!("../pages/", $name, ".md")) }),*),*]
    };
}

/// The start page, which is Markdown like a guide.
pub(crate) const START_PAGE: &str = include_str!("../pages/index.md");

/// All guides, in reading order.
pub(crate) static GUIDES: [Guide; 13] = guides! {
    Start: "sandbox" "getting-started";
    Receive: "events" "verifying" "event-feed";
    Build: "syncing" "crm" "assistants" "kits";
    Rules: "idempotency" "errors" "limits" "changes";
};

impl Guide {
    /// Path at which the guide is served.
    pub(crate) fn path(&self) -> String {
        format!("/docs/guides/{}", self.name)
    }
}

/// Removes the marks behind numbers, such as `<!-- MAX_KEY_CHARS -->`. Tests compare the numbers with the constants.
pub(crate) fn without_marks(text: &str) -> String {
    let mut parts = text.split("<!-- ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(" -->").map_or(part, |(_, rest)| rest))
}
