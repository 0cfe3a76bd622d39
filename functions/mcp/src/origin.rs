//! Origins of web pages that may call the function. A page that a person happens to visit must not use an assistant's
//! key through the browser.

use http::HeaderMap;
use http::header::ORIGIN;
use url::{ParseError, Url};

/// The allowed origins, the service's own included.
pub(crate) struct Origins(Vec<String>);

impl Origins {
    /// The origin of the service's address, and a list with commas between its entries.
    pub(crate) fn new(base: &str, others: &str) -> Result<Self, ParseError> {
        let own = Url::parse(base)?.origin().ascii_serialization();
        let others = others.split(',').map(str::trim).filter(|origin| !origin.is_empty()).map(str::to_owned);
        Ok(Self(std::iter::once(own).chain(others).collect()))
    }

    /// Returns true if a request comes from no web page, or from an allowed one.
    pub(crate) fn allow(&self, headers: &HeaderMap) -> bool {
        headers
            .get_all(ORIGIN)
            .iter()
            .all(|origin| self.0.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_own_origin_and_listed_ones_are_allowed() {
        let origins = Origins::new("https://api.example.com/", "https://app.example.com, vscode-webview://a").unwrap();
        for (sent, is_allowed) in [
            (vec![], true),
            (vec!["https://api.example.com"], true),
            (vec!["https://app.example.com"], true),
            (vec!["vscode-webview://a"], true),
            (vec!["https://api.example.com:8443"], false),
            (vec!["http://api.example.com"], false),
            (vec!["https://api.example.com.evil.example"], false),
            (vec!["https://app.example.com", "https://evil.example"], false),
            (vec!["null"], false),
            (vec![""], false),
        ] {
            let headers: HeaderMap = sent.iter().map(|one| (ORIGIN, HeaderValue::from_static(one))).collect();
            assert_eq!(origins.allow(&headers), is_allowed, "{sent:?}");
        }
        assert!(Origins::new("api.example.com", "").is_err());
    }
}
