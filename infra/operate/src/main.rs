//! `cargo run -p operate`: the operators' command.

fn main() -> std::process::ExitCode {
    operate::main()
}
