//! The Lambda function: see the library.

use aws_lambda_events::event::sqs::SqsEvent;
use ingest::App;
use lambda_runtime::{LambdaEvent, service_fn};
use runtime::{BoxError, Environment, log_json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let env = Environment::from_process()?;
    log_json(env.config());
    let app = App::new(&env).await?;
    let app = &app;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<SqsEvent>| app.handle(event))).await
}
