//! The origin of the application that frames the portal.

use std::fmt::{self, Display};
use std::str::FromStr;

use url::{Host, Url};

/// A web origin, such as `https://app.example.com`: scheme, host and a port that is not the default.
///
/// A page of the origin must be a secure context, since the portal needs functions that browsers reserve for those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin(String);

/// A text is not an origin as browsers write it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an origin such as https://app.example.com, without a path; http on loopback only")]
pub(crate) struct NotAnOrigin;

impl FromStr for Origin {
    type Err = NotAnOrigin;

    /// Parses an origin. Browsers compare origins as text, so any other spelling would match no page.
    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let url = Url::parse(text).map_err(|_| NotAnOrigin)?;
        let is_loopback = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        let is_secure = url.scheme() == "https" || (url.scheme() == "http" && is_loopback);
        let is_origin = is_secure && url.origin().ascii_serialization() == text;
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
    #[case("http://localhost:3000", true)]
    #[case("http://[::1]:3000", true)]
    #[case("http://app.example.com", false)]
    #[case("http://localhost.example.com", false)]
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
