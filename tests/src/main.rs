//! The local stack, started by the tests.

fn main() -> std::process::ExitCode {
    local_stack::process::main()
}
