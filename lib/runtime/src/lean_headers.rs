//! What calls to AWS leave out of their headers.
//!
//! The SDK describes itself, twice, numbers its calls and tells of its attempts and its patience. No service here acts by that, and all
//! of it has to be written and signed. AWS's own request id tells one call from another, in our log, too.

use aws_runtime::invocation_id::InvocationIdInterceptor;
use aws_runtime::request_info::RequestInfoInterceptor;
use aws_runtime::user_agent::UserAgentInterceptor;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextMut,
};
use aws_smithy_runtime_api::client::interceptors::{Intercept, disable_interceptor, dyn_dispatch_hint};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;

use crate::BoxError;

/// Who calls, as CloudTrail shows it.
const USER_AGENT: &str = "partner-api/1";

/// Has a client send `User-Agent: partner-api/1` in the place of `User-Agent`, `x-amz-user-agent`, `amz-sdk-invocation-id` and
/// `amz-sdk-request` as the SDK writes them.
#[derive(Debug)]
pub struct LeanHeaders;

#[dyn_dispatch_hint]
impl Intercept for LeanHeaders {
    fn name(&self) -> &'static str {
        "LeanHeaders"
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let state = config.interceptor_state();
        state.store_put(disable_interceptor::<UserAgentInterceptor>("no service reads it"));
        state.store_put(disable_interceptor::<InvocationIdInterceptor>("no service reads it"));
        state.store_put(disable_interceptor::<RequestInfoInterceptor>("no service reads it"));
        Ok(())
    }

    fn modify_before_signing(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        context.request_mut().headers_mut().insert("user-agent", USER_AGENT);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aws_sdk_sqs::config::{Builder, Credentials, Region};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::http::{Http, amazon_roots};

    /// The head of a request that SQS is sent, in lower case.
    async fn request_head() -> String {
        let service = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let client = aws_sdk_sqs::Client::from_conf(
            Builder::new()
                .behavior_version_latest()
                .region(Region::new("us-east-1"))
                .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
                .endpoint_url(format!("http://{}", service.local_addr().unwrap()))
                .http_client(Http::new(amazon_roots(), Duration::from_secs(5)))
                .interceptor(LeanHeaders)
                .build(),
        );
        let served = async {
            let (mut stream, _) = service.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                assert_ne!(stream.read_buf(&mut head).await.unwrap(), 0);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
            String::from_utf8(head).unwrap().to_lowercase()
        };
        let (head, answer) = tokio::join!(served, client.list_queues().send());
        answer.unwrap();
        head
    }

    #[tokio::test]
    async fn a_call_says_who_calls_and_nothing_of_the_sdk() {
        let head = request_head().await;
        assert!(head.contains("\r\nuser-agent: partner-api/1\r\n"), "{head}");
        assert!(head.contains("\r\nauthorization: aws4-hmac-sha256 credential=key/"), "{head}");
        for left_out in ["x-amz-user-agent", "amz-sdk-", "aws-sdk"] {
            assert!(!head.contains(left_out), "{left_out}: {head}");
        }
    }
}
