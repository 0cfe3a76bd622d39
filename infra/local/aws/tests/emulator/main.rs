//! Tests of the AWS emulator through the SDKs, over HTTP and with a clock that the tests move.

#![expect(clippy::unwrap_used, reason = "an unwrap that panics fails the test")]

mod dynamodb;
mod faults;
mod permissions;
mod roles;
mod services;
mod sqs;
mod sqs_fifo;
mod stack;
mod world;
