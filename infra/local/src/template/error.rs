//! The reason why a template is refused.

/// The reason why the local stack does not support the template, as one line for the user.
#[derive(Debug, thiserror::Error)]
#[error("template.yaml {0}")]
pub struct TemplateError(pub(super) String);

impl TemplateError {
    pub(crate) fn new(message: impl std::fmt::Display) -> Self {
        Self(message.to_string().replace('\n', " "))
    }

    pub(super) fn of(resource: &str) -> impl Fn(Self) -> Self {
        move |error| Self(format!("{resource}: {}", error.0))
    }
}
