//! Waits until nothing is left to do at the current time: no message can be received or is in flight, no stream record
//! is unread, and no invocation runs. Dead letters, delayed messages and messages of a locked group do not count.

use std::time::Duration;

use local_aws::{Aws, StoreError};

use crate::work::Work;

/// Time without any change after which the remaining work counts as stalled.
const STALLED_AFTER: Duration = Duration::from_secs(90);

/// One function's position in a table's stream.
#[derive(Debug, Clone)]
pub struct Reader {
    /// The table.
    pub table: String,
    /// The consumer's name, under which its checkpoint is stored.
    pub consumer: String,
}

/// The reason why the stack does not settle.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Work is left, and nothing processes it.
    #[error(
        "the stack did not settle: messages or stream records are left, and nothing has happened for {STALLED_AFTER:?}"
    )]
    Stalled,
}

/// Waits until nothing is left to do.
pub async fn settle(aws: &Aws, work: &Work, readers: &[Reader]) -> Result<(), SettleError> {
    let mut changes = aws.changes();
    let mut activity = work.watch();
    loop {
        changes.borrow_and_update();
        let before = *activity.borrow_and_update();
        if before.running == 0 && is_quiet(aws, readers).await? && *activity.borrow() == before {
            return Ok(());
        }
        let changed = async {
            tokio::select! {
                changed = changes.changed() => changed.is_ok(),
                changed = activity.changed() => changed.is_ok(),
            }
        };
        match tokio::time::timeout(STALLED_AFTER, changed).await {
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
    Ok(!aws.sqs().is_busy().await?)
}
