//! The Lambda function: see the library.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    runtime::run(async |env| edge::lambda::run(&env, login_links::router(&env).await?).await).await
}
