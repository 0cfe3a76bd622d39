//! The operators' command, run by the tests.

fn main() -> std::process::ExitCode {
    operate::main()
}
