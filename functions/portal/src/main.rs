//! Entry point of the Lambda function. The library has the routes.

fn main() -> std::process::ExitCode {
    edge::lambda::main(portal::router)
}
