//! The deployment that the documentation describes. Texts name an example's addresses and live keys; a deployment shows
//! its own.

use domain::mode::Mode;

use crate::site::{EXAMPLE_BASE, EXAMPLE_SANDBOX, Guide, SANDBOX_GUIDE};

/// Beginnings of keys in texts, and those of a sandbox.
const KEYS: [[&str; 2]; 2] = [["svc_live_", "svc_test_"], ["crm_live_", "crm_test_"]];

/// The deployment that serves the documentation.
#[derive(Debug, Clone)]
pub(crate) struct Deployment {
    pub(crate) mode: Mode,
    /// The address of its API.
    pub(crate) base: String,
    /// The address of the sandbox: the deployment itself, or the one beside it.
    sandbox: Option<String>,
}

impl Deployment {
    /// Creates a deployment at an address. `other` is the address of the deployment of the other mode.
    pub(crate) fn new(mode: Mode, base: &str, other: Option<&str>) -> Self {
        let sandbox = match mode {
            Mode::Live => other,
            Mode::Test => Some(base),
        };
        Self { mode, base: base.to_owned(), sandbox: sandbox.map(str::to_owned) }
    }

    /// Returns true if the deployment shows the guide. The guide to the sandbox needs a sandbox.
    pub(crate) fn shows(&self, guide: &Guide) -> bool {
        self.sandbox.is_some() || guide.path() != SANDBOX_GUIDE
    }

    /// Leaves out paragraphs, rows and items that lead to the guide to the sandbox, if the deployment does not show it.
    pub(crate) fn without_lost_links(&self, text: &str) -> String {
        let link = format!("]({SANDBOX_GUIDE}");
        if self.sandbox.is_some() || !text.contains(&link) {
            return text.to_owned();
        }
        let is_of_lines = |block: &str| block.starts_with("| ") || block.starts_with("- ");
        let blocks = text.split("\n\n").filter_map(|block| match block {
            _ if !block.contains(&link) => Some(block.to_owned()),
            _ if is_of_lines(block) => {
                Some(block.split('\n').filter(|line| !line.contains(&link)).collect::<Vec<_>>().join("\n"))
            }
            _ => None,
        });
        blocks.collect::<Vec<_>>().join("\n\n")
    }

    /// Replaces the addresses and keys of the texts by those of the deployment.
    pub(crate) fn fill_in(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if self.mode == Mode::Test {
            // Pages of the sandbox are the deployment's own.
            text = text.replace(&format!("]({EXAMPLE_SANDBOX}/"), "](/");
            for [live, test] in KEYS {
                text = text.replace(live, test);
            }
        }
        let sandbox = self.sandbox.as_deref().unwrap_or(EXAMPLE_SANDBOX);
        text.replace(EXAMPLE_BASE, &self.base).replace(EXAMPLE_SANDBOX, sandbox)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Page\n\nKeep.\n\n| a |\n|---|\n| [x](/docs/guides/sandbox#limits) |\n| b |\n\nSee\n\
                        [the sandbox](/docs/guides/sandbox).\n\n- [y](/docs/guides/sandbox)\n- c\n";

    #[test]
    fn a_deployment_without_a_sandbox_leaves_out_what_leads_to_its_guide() {
        let live = |other| Deployment::new(Mode::Live, EXAMPLE_BASE, other);
        assert_eq!(live(None).without_lost_links(TEXT), "# Page\n\nKeep.\n\n| a |\n|---|\n| b |\n\n- c\n");
        assert_eq!(live(Some(EXAMPLE_SANDBOX)).without_lost_links(TEXT), TEXT);
        assert_eq!(Deployment::new(Mode::Test, EXAMPLE_BASE, None).without_lost_links(TEXT), TEXT);
    }

    #[test]
    fn a_page_names_the_addresses_and_keys_of_the_deployment() {
        let text = "BASE=https://api.example.com KEY=svc_live_... or https://sandbox.example.com: \
                    [reference](https://sandbox.example.com/docs/reference/sandbox)";
        let live = Deployment::new(Mode::Live, "https://a.example", Some("https://b.example"));
        let sandbox = Deployment::new(Mode::Test, "https://b.example", Some("https://a.example"));
        assert_eq!(
            live.fill_in(text),
            "BASE=https://a.example KEY=svc_live_... or https://b.example: \
             [reference](https://b.example/docs/reference/sandbox)"
        );
        assert_eq!(
            sandbox.fill_in(text),
            "BASE=https://b.example KEY=svc_test_... or https://b.example: [reference](/docs/reference/sandbox)"
        );
    }
}
