//! The deliverer as an AWS Lambda function.

use aws_lambda_events::event::sqs::SqsEvent;
use deliver::App;
use lambda_runtime::{LambdaEvent, service_fn};
use runtime::{BoxError, Environment};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let env = Environment::from_process()?;
    runtime::log_json(env.config());
    let app = &App::new(&env).await?;
    let handle = move |event: LambdaEvent<SqsEvent>| async move { Ok::<_, BoxError>(app.handle(event).await) };
    lambda_runtime::run(service_fn(handle)).await
}
