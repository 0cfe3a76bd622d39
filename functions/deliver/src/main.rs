//! The Lambda function: see the library.

use std::process::ExitCode;

use aws_lambda_events::event::sqs::SqsEvent;
use deliver::App;
use lambda_runtime::{LambdaEvent, service_fn};
use runtime::BoxError;

fn main() -> ExitCode {
    runtime::run(async |env| {
        let app: &App = Box::leak(Box::new(App::new(&env).await?));
        let handle = move |event: LambdaEvent<SqsEvent>| async move { Ok::<_, BoxError>(app.handle(event).await) };
        Ok(lambda_runtime::run(service_fn(handle)))
    })
}
