//! The Lambda function: see the library.

use std::process::ExitCode;

use aws_lambda_events::event::sqs::SqsEvent;
use ingest::App;
use lambda_runtime::{LambdaEvent, service_fn};

fn main() -> ExitCode {
    runtime::run(async |env| {
        let app: &App = Box::leak(Box::new(App::new(&env).await?));
        Ok(lambda_runtime::run(service_fn(move |event: LambdaEvent<SqsEvent>| app.handle(event))))
    })
}
