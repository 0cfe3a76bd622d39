//! Route matching by API Gateway's rules: a literal segment beats `{param}`, which beats `{proxy+}`. Then the method
//! beats `ANY`. `$default` takes every other request.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

/// A route's path and method.
#[derive(Debug, Clone)]
struct Pattern {
    method: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    // In order of precedence.
    Literal(String),
    Parameter(String),
    Rest(String),
}

/// The API's routes with their targets.
#[derive(Debug, Clone)]
pub(super) struct Routes<T> {
    patterns: Vec<(Pattern, String, T)>,
    default: Option<T>,
}

/// The route that a request matches.
#[derive(Debug)]
pub(super) struct Matched<'a, T> {
    /// The route key, such as `GET /v1/clients/{clientId}` or `$default`.
    pub(super) key: &'a str,
    /// Decoded path parameters.
    pub(super) parameters: BTreeMap<String, String>,
    /// The route's target.
    pub(super) target: &'a T,
}

impl<T> Default for Routes<T> {
    fn default() -> Self {
        Self { patterns: Vec::new(), default: None }
    }
}

impl<T> Routes<T> {
    /// Adds a route. Returns false when the API has it already.
    pub(super) fn add(&mut self, method: &str, path: &str, target: T) -> bool {
        if path == "$default" {
            return self.default.replace(target).is_none();
        }
        let method = method.to_uppercase();
        let segments: Vec<Segment> = path.split('/').skip(1).map(Segment::parse).collect();
        let key = format!("{method} {path}");
        let fresh = self.patterns.iter().all(|(_, other, _)| *other != key);
        self.patterns.push((Pattern { method, segments }, key, target));
        fresh
    }

    /// Finds the route for a request's method and raw path.
    pub(super) fn find(&self, method: &str, path: &str) -> Option<Matched<'_, T>> {
        let given: Vec<&str> = path.split('/').skip(1).collect();
        let matching = self.patterns.iter().filter(|(pattern, _, _)| pattern.matches(method, &given));
        let best = matching.min_by(|(a, _, _), (b, _, _)| a.precedence().cmp(&b.precedence()));
        match best {
            Some((pattern, key, target)) => Some(Matched { key, parameters: pattern.parameters(&given), target }),
            None => {
                let target = self.default.as_ref()?;
                Some(Matched { key: "$default", parameters: BTreeMap::new(), target })
            }
        }
    }
}

impl Segment {
    fn parse(text: &str) -> Self {
        match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            Some(name) => match name.strip_suffix('+') {
                Some(name) => Self::Rest(name.to_owned()),
                None => Self::Parameter(name.to_owned()),
            },
            None => Self::Literal(text.to_owned()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Literal(_) => 0,
            Self::Parameter(_) => 1,
            Self::Rest(_) => 2,
        }
    }
}

impl Pattern {
    fn matches(&self, method: &str, given: &[&str]) -> bool {
        if self.method != "ANY" && self.method != method {
            return false;
        }
        let greedy = matches!(self.segments.last(), Some(Segment::Rest(_)));
        let lengths_match =
            if greedy { given.len() >= self.segments.len() } else { given.len() == self.segments.len() };
        lengths_match
            && self.segments.iter().zip(given).all(|(segment, given)| match segment {
                Segment::Literal(literal) => literal == given,
                Segment::Parameter(_) | Segment::Rest(_) => !given.is_empty(),
            })
    }

    fn precedence(&self) -> (Vec<u8>, bool) {
        (self.segments.iter().map(Segment::rank).collect(), self.method == "ANY")
    }

    fn parameters(&self, given: &[&str]) -> BTreeMap<String, String> {
        let pairs = self.segments.iter().enumerate().filter_map(|(index, segment)| match segment {
            Segment::Literal(_) => None,
            Segment::Parameter(name) => Some((name.clone(), decoded(given[index]))),
            Segment::Rest(name) => Some((name.clone(), decoded(&given[index..].join("/")))),
        });
        pairs.collect()
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Routes<()> {
        let mut routes = Routes::default();
        for (method, path) in [
            ("GET", "/v1/clients"),
            ("GET", "/v1/clients/{clientId}"),
            ("GET", "/v1/clients/me"),
            ("ANY", "/v1/clients/{clientId}"),
            ("GET", "/files/{path+}"),
            ("POST", "/settings/webhooks/{id}/test"),
            ("ANY", "$default"),
        ] {
            assert!(routes.add(method, path, ()));
        }
        routes
    }

    #[rstest::rstest]
    #[case("GET", "/v1/clients", "GET /v1/clients")]
    #[case("GET", "/v1/clients/", "$default")]
    #[case("GET", "/v1/clients/c1", "GET /v1/clients/{clientId}")]
    #[case("GET", "/v1/clients/me", "GET /v1/clients/me")]
    #[case("DELETE", "/v1/clients/c1", "ANY /v1/clients/{clientId}")]
    #[case("DELETE", "/v1/clients/me", "ANY /v1/clients/{clientId}")]
    #[case("GET", "/v1/clients/c1/more", "$default")]
    #[case("GET", "/files/a/b", "GET /files/{path+}")]
    #[case("GET", "/files/", "$default")]
    #[case("POST", "/settings/webhooks/w/test", "POST /settings/webhooks/{id}/test")]
    #[case("OPTIONS", "*", "$default")]
    #[case("GET", "", "$default")]
    fn the_most_specific_route_wins(#[case] method: &str, #[case] path: &str, #[case] key: &str) {
        assert_eq!(routes().find(method, path).unwrap().key, key);
    }

    #[test]
    fn parameters_are_decoded() {
        let routes = routes();
        let parameters = |path| routes.find("GET", path).unwrap().parameters;
        assert_eq!(parameters("/v1/clients/a%2Fb%20c")["clientId"], "a/b c");
        assert_eq!(parameters("/v1/clients/%ff")["clientId"], "\u{fffd}");
        assert_eq!(parameters("/files/x/y%20z")["path"], "x/y z");
        assert!(parameters("/nowhere").is_empty());
    }

    #[test]
    fn without_a_default_an_unknown_path_has_no_route() {
        let mut routes = Routes::default();
        routes.add("GET", "/a", ());
        assert!(routes.find("POST", "/a").is_none());
        assert!(!routes.add("get", "/a", ()));
    }
}
