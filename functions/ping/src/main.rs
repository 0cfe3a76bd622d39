//! The Lambda function: see the library.

use runtime::{BoxError, Environment, log_json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let env = Environment::from_process()?;
    log_json(env.config());
    edge::lambda::run(&env, ping::router(&env).await?).await
}
