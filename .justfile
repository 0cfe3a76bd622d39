# Everything that has to hold, as CI runs it.
check:
    bash .ci/run

# The local stack.
run *args:
    cargo run -- {{args}}

fmt:
    cargo fmt --all

# The functions as AWS Lambda takes them.
build:
    sam build

# The documentation as a reader would open it.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --lib --open
