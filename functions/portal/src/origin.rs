//! The origin of the application that frames the portal.

use std::fmt::{self, Display};
use std::str::FromStr;

use url::Url;

/// A web origin, such as `https://app.example.com`: scheme, host and a port that is not the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin(String);

/// A text is not an origin as browsers write it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an origin such as https://app.example.com, without a path")]
pub(crate) struct NotAnOrigin;

impl FromStr for Origin {
    type Err = NotAnOrigin;

    /// Parses an origin. Browsers compare origins as text, so any other spelling would match no page.
    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let url = Url::parse(text).map_err(|_| NotAnOrigin)?;
        let is_origin = matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text;
        is_origin.then(|| Self(text.to_owned())).ok_or(NotAnOrigin)
    }
}

impl Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("https://app.example.com", true)]
    #[case("http://127.0.0.1:8080", true)]
    #[case("https://app.example.com/", false)]
    #[case("https://app.example.com:443", false)]
    #[case("https://App.example.com", false)]
    #[case("https://app.example.com/path", false)]
    #[case("https://app.example.com; script-src *", false)]
    #[case("*", false)]
    #[case("null", false)]
    #[case("data:text/html,x", false)]
    fn an_origin_is_written_as_browsers_write_it(#[case] text: &str, #[case] is_origin: bool) {
        assert_eq!(text.parse::<Origin>().is_ok(), is_origin);
    }
}
