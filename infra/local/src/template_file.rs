//! The project's template.yaml, with the parameters of a local run.

use std::collections::BTreeMap;

use domain::mode::Mode;
use local_aws::Secrets;

use crate::options::MODE_PARAMETER;
use crate::template::{Template, TemplateError};

const TEMPLATE: &str = include_str!("../../../template.yaml");

/// Loads the template for a stack of the mode at these addresses. `given` are further values of parameters.
pub(crate) fn load(
    mode: Mode,
    base_url: &str,
    aws_url: &str,
    given: &[(String, String)],
) -> Result<Template, TemplateError> {
    let mut parameters = parameters(base_url);
    parameters.extend(given.iter().cloned());
    parameters.insert(MODE_PARAMETER.to_owned(), mode.as_str().to_owned());
    Template::load(TEMPLATE, &parameters, aws_url)
}

/// Loads the template with the mode for a look at its policies. ARNs are those of every local stack.
pub fn of_mode(mode: Mode) -> Result<Template, TemplateError> {
    // No policy contains a URL, so the addresses may be empty.
    let mut template = load(mode, "", "", &[])?;
    for (logical_id, _) in template.secrets()? {
        template.set_secret_arn(&logical_id, Secrets::arn(&logical_id));
    }
    Ok(template)
}

/// The template parameters of a local run.
fn parameters(base_url: &str) -> BTreeMap<String, String> {
    [
        ("SettingsIssuer", format!("{base_url}/_local/issuer")),
        ("SettingsAudience", "settings".to_owned()),
        ("SettingsPageOrigin", base_url.to_owned()),
        ("AssertionIssuer", base_url.to_owned()),
        ("MailFrom", "coach@demo.example".to_owned()),
        ("LogLevel", "info".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
