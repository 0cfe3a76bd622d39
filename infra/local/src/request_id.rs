//! Ids of requests and invocations.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Generates an id in API Gateway's format: 15 characters of base64 and one of padding.
pub(crate) fn request_id() -> String {
    STANDARD.encode(runtime::random_bytes::<11>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_looks_like_api_gateways() {
        let id = request_id();
        assert!(id.len() == 16 && id.ends_with('='), "{id}");
        assert_ne!(id, request_id());
    }
}
