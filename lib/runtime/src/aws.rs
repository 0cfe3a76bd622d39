//! The settings that all AWS SDK clients share.
//!
//! The SDK's own loader is not used: a function's credentials and region are environment variables, and looking for
//! them elsewhere costs start-up time.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_http_client::Builder as HttpClientBuilder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_types::SdkConfig;
use aws_types::region::Region;
use aws_types::sdk_config::{RetryConfig, StalledStreamProtectionConfig, TimeoutConfig};

use crate::config::{Config, ConfigError};

/// Time-out of a call to AWS, retries included: well within the 25 s of functions behind the API.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(10);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(4);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Tries of a call, the first included.
const MAX_ATTEMPTS: u32 = 4;
/// Longest wait before the second try, doubled for each later one. The SDK's default of a second would often be longer
/// than the disturbance: AWS's SDKs for other languages begin with 25 to 50 ms for DynamoDB.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);

/// Settings from `AWS_REGION`, the credential variables of the Lambda runtime and, if set, `AWS_ENDPOINT_URL`.
pub(crate) fn sdk_config(config: &Config) -> Result<SdkConfig, ConfigError> {
    let credentials = Credentials::new(
        config.get("AWS_ACCESS_KEY_ID")?,
        config.get("AWS_SECRET_ACCESS_KEY")?,
        config.find("AWS_SESSION_TOKEN").map(str::to_owned),
        None,
        "environment",
    );
    // rustls with ring: aws-lc, the default, needs cmake and gathers entropy at a cold start.
    let http_client = HttpClientBuilder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(OPERATION_TIMEOUT)
        .build();
    let mut builder = SdkConfig::builder()
        .region(Region::new(config.get("AWS_REGION")?.to_owned()))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(http_client)
        .sleep_impl(TokioSleep::new())
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS).with_initial_backoff(FIRST_BACKOFF))
        // Answers are a few kilobytes with a time-out each, and watching the throughput costs more than reading them.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    builder.set_endpoint_url(config.find("AWS_ENDPOINT_URL").map(str::to_owned));
    Ok(builder.build())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

    /// Sends a message to a service whose first connection gets `first` and is closed. The others are answered.
    async fn send(first: &'static [u8]) -> bool {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let variables = [
            ("AWS_ACCESS_KEY_ID", "key".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://{}", listener.local_addr().unwrap())),
        ];
        tokio::spawn(async move {
            let mut answer = first;
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                stream.write_all(answer).await.unwrap();
                answer = ANSWER;
            }
        });
        let config = Config::from_vars(variables.map(|(name, value)| (name.to_owned(), value)));
        let client = aws_sdk_sqs::Client::new(&sdk_config(&config).unwrap());
        client.send_message().queue_url("http://queue").message_body("{}").send().await.is_ok()
    }

    #[rstest::rstest]
    #[case::answered(ANSWER, true)]
    #[case::closed(b"", true)]
    #[case::cut_off(b"HTTP/1.1 200 OK\r\ncontent-le", true)]
    #[case::failed(b"HTTP/1.1 500 Oops\r\ncontent-length: 2\r\n\r\n{}", true)]
    #[case::unavailable(b"HTTP/1.1 503 Later\r\ncontent-length: 2\r\n\r\n{}", true)]
    #[case::denied(b"HTTP/1.1 403 No\r\ncontent-length: 2\r\n\r\n{}", false)]
    #[tokio::test]
    async fn a_call_is_repeated_on_a_new_connection_unless_the_service_refused_it(
        #[case] first: &'static [u8],
        #[case] succeeds: bool,
    ) {
        assert_eq!(send(first).await, succeeds);
    }
}
