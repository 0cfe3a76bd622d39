//! `cargo run`: the local stack.

fn main() -> std::process::ExitCode {
    local_stack::process::main()
}
