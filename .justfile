# All checks, as CI runs them.
check:
    bash .ci/run

# Start the local stack.
run *args:
    cargo run -- {{args}}

# Measure, and replace the figures in infra/bench/README.md.
bench *args:
    cargo run --package bench --release -- {{args}}

fmt:
    cargo fmt --all

# Build the functions for AWS Lambda.
build:
    sam build

# Build and open the crates' documentation.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --lib --open
