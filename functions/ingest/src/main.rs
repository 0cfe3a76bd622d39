//! The Lambda function: see the library.

use std::process::ExitCode;

use aws_lambda_events::event::sqs::SqsEvent;
use ingest::App;
use lambda_runtime::{LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    runtime::run(async |env| {
        let app: &App = Box::leak(Box::new(App::new(&env).await?));
        // A task is woken by way of a queue; the outermost future is by way of the kernel, and back.
        tokio::spawn(lambda_runtime::run(service_fn(move |event: LambdaEvent<SqsEvent>| app.handle(event)))).await?
    })
    .await
}
