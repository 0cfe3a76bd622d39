//! The settings that all AWS SDK clients share.
//!
//! The SDK's own loader is left out: a function's credentials and region are environment variables, and looking for them
//! elsewhere costs start-up time. The TLS client trusts Amazon's roots alone (`amazon_roots.pem`, from
//! <https://www.amazontrust.com/repository/>): parsing the operating system's whole set is most of a cold start's CPU.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_types::SdkConfig;
use aws_types::region::Region;
use aws_types::sdk_config::{RetryConfig, StalledStreamProtectionConfig, TimeoutConfig};

use crate::config::{Config, ConfigError};

const AMAZON_ROOTS: &[u8] = include_bytes!("amazon_roots.pem");

/// A call to AWS is given up after this long, retries included: well inside the API's own 29 s.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(10);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(4);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Settings from `AWS_REGION`, the credential variables of the Lambda runtime and, where AWS is somewhere else, `AWS_ENDPOINT_URL`, and
/// `AWS_CA_BUNDLE` with the file of those roots (PEM) that are trusted there.
pub(crate) fn sdk_config(config: &Config) -> Result<SdkConfig, ConfigError> {
    let credentials = Credentials::new(
        config.get("AWS_ACCESS_KEY_ID")?,
        config.get("AWS_SECRET_ACCESS_KEY")?,
        config.find("AWS_SESSION_TOKEN").map(str::to_owned),
        None,
        "environment",
    );
    let roots = match config.find("AWS_CA_BUNDLE") {
        None => AMAZON_ROOTS.to_vec(),
        Some(path) => std::fs::read(path).map_err(|error| ConfigError::new("AWS_CA_BUNDLE", error))?,
    };
    let tls = TlsContext::builder()
        .with_trust_store(TrustStore::empty().with_pem_certificate(roots))
        .build()
        .expect("a context of a trust store alone is valid");
    let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).tls_context(tls).build_https();
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(OPERATION_TIMEOUT)
        .build();
    let mut builder = SdkConfig::builder()
        .region(Region::new(config.get("AWS_REGION")?.to_owned()))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(http)
        .sleep_impl(TokioSleep::new())
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard())
        // Answers are small and the time-outs above bound them: there is no stream to watch.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    builder.set_endpoint_url(config.find("AWS_ENDPOINT_URL").map(str::to_owned));
    Ok(builder.build())
}
