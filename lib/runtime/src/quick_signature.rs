//! AWS's Signature Version 4, for the requests that the services behind the functions are sent: a POST of JSON.
//!
//! The SDK derives the day's signing key for each call anew, and sorts and copies headers that are always the same few. Here the key is kept for its day. Whatever is not of that one form, or is tried again, is signed by the SDK's own signer:
//! it knows of clocks that are wrong. Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_runtime::auth::SigV4OperationSigningConfig;
use aws_runtime::auth::sigv4::{SCHEME_ID, SigV4Signer};
use aws_smithy_runtime_api::client::auth::{AuthScheme, AuthSchemeEndpointConfig, AuthSchemeId, Sign};
use aws_smithy_runtime_api::client::identity::{Identity, SharedIdentityResolver};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_runtime_api::client::runtime_components::{GetIdentityResolver, RuntimeComponents};
use aws_smithy_types::config_bag::ConfigBag;
use aws_types::SigningName;
use aws_types::region::SigningRegion;
use chrono::{DateTime, Datelike, Timelike, Utc};
use hyper::http::HeaderValue;
use ring::digest::{SHA256, digest};
use ring::hmac::{self, HMAC_SHA256};

use crate::BoxError;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// What may change on its way, and is therefore not signed.
const UNSIGNED_HEADERS: [&str; 4] = ["authorization", "user-agent", "x-amzn-trace-id", "transfer-encoding"];
/// `YYYYMMDD`, of `YYYYMMDDTHHMMSSZ`.
const DATE_BYTES: usize = 8;
/// A canonical request: a session token is about a kilobyte, the rest half of one.
const CANONICAL_BYTES: usize = 2_048;

/// The scheme `sigv4` with this signer. A client that is given it signs by it.
#[derive(Debug, Clone, Default)]
pub struct QuickSignature {
    signer: Arc<QuickSigner>,
}

impl AuthScheme for QuickSignature {
    fn scheme_id(&self) -> AuthSchemeId {
        SCHEME_ID
    }

    fn identity_resolver(&self, resolvers: &dyn GetIdentityResolver) -> Option<SharedIdentityResolver> {
        resolvers.identity_resolver(SCHEME_ID)
    }

    fn signer(&self) -> &dyn Sign {
        &*self.signer
    }
}

#[derive(Debug, Default)]
struct QuickSigner {
    sdk: SigV4Signer,
    key: Mutex<Option<Arc<DayKey>>>,
}

/// A signing key, and what it was derived from.
#[derive(Debug)]
struct DayKey {
    credentials: Credentials,
    region: SigningRegion,
    service: SigningName,
    /// `YYYYMMDD/region/service/aws4_request`.
    scope: String,
    key: hmac::Key,
}

/// What is signed of a request.
struct Signable<'a> {
    path: &'a str,
    /// In the order of their names.
    headers: Vec<(&'a str, &'a str)>,
    body: &'a [u8],
}

impl Sign for QuickSigner {
    fn sign_http_request(
        &self,
        request: &mut HttpRequest,
        identity: &Identity,
        endpoint: AuthSchemeEndpointConfig<'_>,
        components: &RuntimeComponents,
        config: &ConfigBag,
    ) -> Result<(), BoxError> {
        let time = timestamp(components.time_source().unwrap_or_default().now());
        let signed =
            if is_plain(&endpoint, config) { self.authorization(request, identity, config, &time) } else { None };
        let Some(authorization) = signed else {
            return self.sdk.sign_http_request(request, identity, endpoint, components, config);
        };
        let headers = request.headers_mut();
        headers.insert("x-amz-date", time);
        headers.insert("authorization", authorization);
        if let Some(token) = identity.data::<Credentials>().and_then(Credentials::session_token) {
            let mut token = HeaderValue::from_str(token)?;
            token.set_sensitive(true);
            headers.insert("x-amz-security-token", token);
        }
        Ok(())
    }
}

impl QuickSigner {
    /// The header `authorization`, if the request is of the form that is signed here.
    fn authorization(
        &self,
        request: &HttpRequest,
        identity: &Identity,
        config: &ConfigBag,
        time: &str,
    ) -> Option<String> {
        let credentials = identity.data::<Credentials>()?;
        let (region, service) = (config.load::<SigningRegion>()?, config.load::<SigningName>()?);
        let signable = Signable::of(request, time, credentials.session_token())?;
        let key = self.key(credentials, &time[..DATE_BYTES], region, service);
        Some(signable.authorization(&key, time))
    }

    /// The key of these credentials for a day.
    fn key(&self, credentials: &Credentials, date: &str, region: &SigningRegion, service: &SigningName) -> Arc<DayKey> {
        let mut kept = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |key: &&Arc<DayKey>| {
            key.scope.starts_with(date)
                && (&key.region, &key.service) == (region, service)
                && key.credentials == *credentials
        };
        if let Some(key) = kept.as_ref().filter(fits) {
            return Arc::clone(key);
        }
        let key = Arc::new(DayKey::derive(credentials.clone(), date, region.clone(), service.clone()));
        *kept = Some(Arc::clone(&key));
        key
    }
}

impl DayKey {
    fn derive(credentials: Credentials, date: &str, region: SigningRegion, service: SigningName) -> Self {
        let scope = [date, region.as_ref(), service.as_ref(), "aws4_request"].join("/");
        let secret = format!("AWS4{}", credentials.secret_access_key());
        let mut key = hmac::Key::new(HMAC_SHA256, secret.as_bytes());
        for part in [date, region.as_ref(), service.as_ref(), "aws4_request"] {
            key = hmac::Key::new(HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
        }
        Self { credentials, region, service, scope, key }
    }
}

/// Whether nothing is asked for but headers of a first attempt that are signed as they are.
fn is_plain(endpoint: &AuthSchemeEndpointConfig<'_>, config: &ConfigBag) -> bool {
    let operation = config.load::<SigV4OperationSigningConfig>();
    endpoint.as_document().is_none()
        && ["signingName", "signingRegion"].iter().all(|name| endpoint.get(name).is_none())
        && operation.is_some_and(|operation| *operation == SigV4OperationSigningConfig::default())
        && config.load::<RequestAttempts>().is_some_and(|attempts| attempts.attempts() == 1)
}

impl<'a> Signable<'a> {
    /// None where something is escaped or trimmed before it is signed.
    fn of(request: &'a HttpRequest, time: &'a str, token: Option<&'a str>) -> Option<Self> {
        let ("POST", ("http" | "https", place)) = (request.method(), request.uri().split_once("://")?) else {
            return None;
        };
        let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        // The port that a scheme has anyway is left out.
        if host.ends_with(":80") || host.ends_with(":443") || !is_canonical(path) {
            return None;
        }
        let given = request.headers();
        let mut headers: Vec<(&str, &str)> = vec![("x-amz-date", time)];
        headers.extend(given.iter().filter(|(name, _)| !UNSIGNED_HEADERS.contains(name)));
        headers.extend(given.get("host").is_none().then_some(("host", host)));
        headers.extend(token.map(|token| ("x-amz-security-token", token)));
        headers.sort_unstable();
        let is_repeated = headers.windows(2).any(|pair| pair[0].0 == pair[1].0);
        if is_repeated || headers.iter().any(|(_, value)| value.trim() != *value || value.contains("  ")) {
            return None;
        }
        Some(Self { path: if path.is_empty() { "/" } else { path }, headers, body: request.body().bytes()? })
    }

    fn authorization(&self, key: &DayKey, time: &str) -> String {
        let names = self.names();
        let mut canonical = String::with_capacity(CANONICAL_BYTES);
        for part in ["POST\n", self.path, "\n\n"] {
            canonical.push_str(part);
        }
        for (name, value) in &self.headers {
            for part in [name, ":", value, "\n"] {
                canonical.push_str(part);
            }
        }
        for part in ["\n", &names, "\n", &hex::encode(digest(&SHA256, self.body))] {
            canonical.push_str(part);
        }
        let hash = hex::encode(digest(&SHA256, canonical.as_bytes()));
        let to_sign = [ALGORITHM, time, &key.scope, &hash].join("\n");
        let signature = hex::encode(hmac::sign(&key.key, to_sign.as_bytes()));
        let id = key.credentials.access_key_id();
        format!("{ALGORITHM} Credential={id}/{}, SignedHeaders={names}, Signature={signature}", key.scope)
    }

    fn names(&self) -> String {
        let mut names = String::new();
        for (name, _) in &self.headers {
            names.push_str(if names.is_empty() { "" } else { ";" });
            names.push_str(name);
        }
        names
    }
}

/// Whether a path is signed as it is: nothing of it is escaped, and no segment is empty or dots.
fn is_canonical(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~');
    path.bytes().all(is_plain) && !path.contains("//") && !path.contains("/.")
}

/// `YYYYMMDDTHHMMSSZ`.
fn timestamp(time: SystemTime) -> String {
    let time = DateTime::<Utc>::from(time);
    let mut text = String::with_capacity(16);
    // A string takes all that is written to it.
    let _ = write!(text, "{:04}{:02}{:02}", time.year(), time.month(), time.day());
    let _ = write!(text, "T{:02}{:02}{:02}Z", time.hour(), time.minute(), time.second());
    text
}

#[cfg(test)]
mod tests;
