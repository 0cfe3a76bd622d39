//! The settings that all AWS SDK clients share.
//!
//! The SDK's own loader is not used: a function's credentials and region are environment variables, and looking for
//! them elsewhere costs start-up time.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_types::SdkConfig;
use aws_types::region::Region;
use aws_types::sdk_config::{RetryConfig, StalledStreamProtectionConfig, TimeoutConfig};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::config::{Config, ConfigError};
use crate::http::{Http, amazon_roots, roots};

/// Time-out of a call to AWS, retries included: well within the 25 s of functions behind the API.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(10);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(4);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Tries of a call, the first included.
const MAX_ATTEMPTS: u32 = 4;
/// Longest wait before the second try, doubled for each later one. The SDK's default of a second would often be longer
/// than the disturbance: AWS's SDKs for other languages begin with 25 to 50 ms for DynamoDB.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);

/// Settings from `AWS_REGION` and the credential variables of the Lambda runtime. Optional are `AWS_ENDPOINT_URL` and
/// `AWS_CA_BUNDLE`, a PEM file with the roots to trust instead of Amazon's.
pub(crate) fn sdk_config(config: &Config) -> Result<SdkConfig, ConfigError> {
    let credentials = Credentials::new(
        config.get("AWS_ACCESS_KEY_ID")?,
        config.get("AWS_SECRET_ACCESS_KEY")?,
        config.find("AWS_SESSION_TOKEN").map(str::to_owned),
        None,
        "environment",
    );
    let roots = config.find("AWS_CA_BUNDLE").map_or_else(|| Ok(amazon_roots()), bundle)?;
    let timeouts = TimeoutConfig::builder()
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(OPERATION_TIMEOUT)
        .build();
    let mut builder = SdkConfig::builder()
        .region(Region::new(config.get("AWS_REGION")?.to_owned()))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(Http::new(roots, CONNECT_TIMEOUT))
        .sleep_impl(TokioSleep::new())
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS).with_initial_backoff(FIRST_BACKOFF))
        // Answers are a few kilobytes with a time-out each, and watching the throughput costs more than reading them.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    builder.set_endpoint_url(config.find("AWS_ENDPOINT_URL").map(str::to_owned));
    Ok(builder.build())
}

fn bundle(path: &str) -> Result<RootCertStore, ConfigError> {
    let invalid = |reason: String| ConfigError::new("AWS_CA_BUNDLE", reason);
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| invalid(error.to_string()))?;
    if certificates.is_empty() {
        return Err(invalid("holds no certificate".to_owned()));
    }
    roots(certificates).map_err(|error| invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_bundle(path: &str) -> Result<SdkConfig, ConfigError> {
        let variables = [
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_CA_BUNDLE", path),
        ];
        sdk_config(&Config::from_vars(variables.map(|(name, value)| (name.to_owned(), value.to_owned()))))
    }

    #[test]
    fn a_bundle_without_certificates_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for path in [file("empty.pem", ""), file("bad.pem", no_certificate), "/no/such/file".to_owned()] {
            let error = with_bundle(&path).unwrap_err().to_string();
            assert!(error.starts_with("environment variable AWS_CA_BUNDLE: "), "{error}");
        }
    }
}
