//! The AWS side of the local stack as the SDKs see it: over HTTP, on a clock that the tests move.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod dynamodb;
mod faults;
mod permissions;
mod services;
mod sqs;
mod world;
