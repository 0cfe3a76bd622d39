//! The Lambda function: see the library.

fn main() -> std::process::ExitCode {
    edge::lambda::main(mcp::router)
}
