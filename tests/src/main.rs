//! The local stack, as the tests start it.

fn main() -> std::process::ExitCode {
    local_stack::process::main()
}
