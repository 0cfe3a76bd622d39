//! Waiting until nothing is left to do now: no visible message, none being worked on, no unread stream record, no scheduled
//! invocation. Dead letters and delayed messages do not count.

use std::time::Duration;

use local_aws::{Aws, StoreError};

use crate::work::Work;

/// When nothing at all happens for this long and yet something is left, nobody is going to do it.
const STALLED_AFTER: Duration = Duration::from_secs(90);

/// A stream that some function reads.
#[derive(Debug, Clone)]
pub struct Reader {
    /// The table.
    pub table: String,
    /// Whose checkpoint it is.
    pub consumer: String,
}

/// Why the stack does not settle.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something is left that nobody does.
    #[error(
        "the stack did not settle: messages or stream records are left, and nothing has happened for {STALLED_AFTER:?}"
    )]
    Stalled,
}

/// Answers when nothing is left to do.
pub async fn settle(aws: &Aws, work: &Work, readers: &[Reader]) -> Result<(), SettleError> {
    let mut changes = aws.changes();
    let mut activity = work.watch();
    loop {
        changes.borrow_and_update();
        let before = *activity.borrow_and_update();
        if before.running == 0 && is_quiet(aws, readers).await? && *activity.borrow() == before {
            return Ok(());
        }
        let happened = async {
            tokio::select! {
                changed = changes.changed() => changed.is_ok(),
                changed = activity.changed() => changed.is_ok(),
            }
        };
        match tokio::time::timeout(STALLED_AFTER, happened).await {
            Ok(true) => {}
            Ok(false) => return Err(StoreError::Closed.into()),
            Err(_elapsed) => return Err(SettleError::Stalled),
        }
    }
}

async fn is_quiet(aws: &Aws, readers: &[Reader]) -> Result<bool, StoreError> {
    for reader in readers {
        if !aws.dynamodb().stream_read(&reader.table, &reader.consumer, 1).await?.records.is_empty() {
            return Ok(false);
        }
    }
    Ok(!aws.sqs().busy().await?)
}
