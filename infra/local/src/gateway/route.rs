//! Route matching by API Gateway's rules: the most specific path of a method wins, then of `ANY`. `$default` takes
//! every other request.

use std::collections::BTreeMap;

use matchit::Router;

/// The API's routes with their targets.
#[derive(Debug, Clone)]
pub(super) struct Routes<T> {
    /// The routes of each method, with their keys.
    by_method: BTreeMap<String, Router<(String, T)>>,
    default: Option<T>,
}

/// The route that a request matches.
#[derive(Debug)]
pub(super) struct Matched<'a, T> {
    /// The route key, such as `GET /v1/clients/{clientId}` or `$default`.
    pub(super) key: &'a str,
    /// The route's target.
    pub(super) target: &'a T,
}

impl<T> Default for Routes<T> {
    fn default() -> Self {
        Self { by_method: BTreeMap::new(), default: None }
    }
}

impl<T> Routes<T> {
    /// Adds a route. Returns false when the API has it already.
    pub(super) fn add(&mut self, method: &str, path: &str, target: T) -> bool {
        if path == "$default" {
            return self.default.replace(target).is_none();
        }
        let method = method.to_uppercase();
        let key = format!("{method} {path}");
        // A greedy parameter: `{proxy+}` is `{*proxy}` here.
        let path = path.split('/').map(|segment| match segment.strip_suffix("+}") {
            Some(greedy) => greedy.replacen('{', "{*", 1) + "}",
            None => segment.to_owned(),
        });
        self.by_method.entry(method).or_default().insert(path.collect::<Vec<_>>().join("/"), (key, target)).is_ok()
    }

    /// Finds the route for a request's method and raw path.
    pub(super) fn find(&self, method: &str, path: &str) -> Option<Matched<'_, T>> {
        let matched = [method, "ANY"].into_iter().find_map(|method| self.by_method.get(method)?.at(path).ok());
        match matched {
            Some(matched) => Some(Matched { key: &matched.value.0, target: &matched.value.1 }),
            None => Some(Matched { key: "$default", target: self.default.as_ref()? }),
        }
    }
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
    fn without_a_default_an_unknown_path_has_no_route() {
        let mut routes = Routes::default();
        routes.add("GET", "/a", ());
        assert!(routes.find("POST", "/a").is_none());
        assert!(!routes.add("get", "/a", ()));
    }
}
