//! The Lambda function: see the library.

fn main() -> std::process::ExitCode {
    edge::lambda::main(sandbox::router)
}
