//! Contents of the documentation: its version, its guides, the files of the reference page, and the kits.

/// Version of the interface, which its owner sets. Additions do not raise it.
pub(crate) const VERSION: &str = "1.2.0";

/// Path of the reference page.
pub(crate) const REFERENCE: &str = "/docs";

/// Names of the reference page's files.
pub(crate) const FILES: [&str; 4] = ["swagger-ui-bundle.js", "swagger-ui.css", "reference.js", "style.css"];

/// A file to download, that integrators run or import.
pub(crate) struct Kit {
    pub(crate) name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! kit {
    ($name:literal, $media_type:literal) => {
        Kit { name: $name, media_type: $media_type, text: include_str!(concat!("../kits/", $name)) }
    };
}

/// All kits: a script that passes the event feed on to a local receiver, and kits for automation platforms. Browsers
/// show a script in Python as text.
pub(crate) static KITS: [Kit; 4] = [
    kit!("listen.py", "text/plain; charset=utf-8"),
    kit!("n8n-workflow.json", "application/json; charset=utf-8"),
    kit!("zapier-app.js", "text/javascript; charset=utf-8"),
    kit!("make-app.json", "application/json; charset=utf-8"),
];

impl Kit {
    /// Path at which the kit is served.
    pub(crate) fn path(&self) -> String {
        format!("{REFERENCE}/{}", self.name)
    }
}

/// A guide: its name in the path, its title and its Markdown.
pub(crate) struct Guide {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! guide {
    ($name:literal, $title:literal) => {
        Guide { name: $name, title: $title, text: include_str!(concat!("../pages/", $name, ".md")) }
    };
}

/// All guides, in reading order.
pub(crate) static GUIDES: [Guide; 10] = [
    guide!("getting-started", "Getting started"),
    guide!("crm", "The CRM"),
    guide!("idempotency", "Idempotency"),
    guide!("errors", "Errors"),
    guide!("limits", "Limits"),
    guide!("events", "Events"),
    guide!("verifying", "Verify webhooks"),
    guide!("event-feed", "The event feed"),
    guide!("syncing", "Sync clients and records"),
    guide!("kits", "n8n, Zapier and Make"),
];

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
