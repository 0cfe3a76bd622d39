//! The deliverer as an AWS Lambda function.

use std::process::ExitCode;

use aws_lambda_events::event::sqs::SqsEvent;
use deliver::App;
use lambda_runtime::{LambdaEvent, service_fn};
use runtime::BoxError;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    runtime::run(async |env| {
        let app: &App = Box::leak(Box::new(App::new(&env).await?));
        let handle = move |event: LambdaEvent<SqsEvent>| async move { Ok::<_, BoxError>(app.handle(event).await) };
        // A task is woken by way of a queue; the outermost future is by way of the kernel, and back.
        tokio::spawn(lambda_runtime::run(service_fn(handle))).await?
    })
    .await
}
