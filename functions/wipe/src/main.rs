//! The Lambda function: see the library.

use std::process::ExitCode;

use lambda_runtime::{LambdaEvent, service_fn};
use wipe::{App, Invocation};

fn main() -> ExitCode {
    runtime::run(async |env| {
        let app: &App = Box::leak(Box::new(App::new(&env).await?));
        Ok(lambda_runtime::run(service_fn(move |event: LambdaEvent<Invocation>| app.handle(event))))
    })
}
