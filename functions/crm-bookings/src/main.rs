//! The Lambda function: see the library.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    runtime::run(async |env| edge::lambda::run(&env, crm_bookings::router(&env).await?).await).await
}
