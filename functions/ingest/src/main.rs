//! The Lambda function: see the library.

use aws_lambda_events::event::sqs::SqsEvent;
use ingest::App;
use lambda_runtime::{LambdaEvent, service_fn};
use runtime::{BoxError, Environment, log_json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let env = Environment::from_process()?;
    log_json(env.config());
    let app: &App = Box::leak(Box::new(App::new(&env).await?));
    // A task is woken by way of a queue; the outermost future is by way of the kernel, and back.
    tokio::spawn(lambda_runtime::run(service_fn(move |event: LambdaEvent<SqsEvent>| app.handle(event)))).await?
}
