//! What can go wrong for the host. Errors of the emulated services themselves are answers: see [`crate::answer`].

/// The data directory cannot be used. One line, for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(String);

/// A resource of the template cannot be set up. One line, for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(String);

/// The local stack's own storage failed, or has been closed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite refused a statement.
    #[error("local storage: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The inner DynamoDB refused a call, or could not be asked.
    #[error("local DynamoDB: {0}")]
    DynamoDb(String),
    /// There is no such resource.
    #[error("{0} does not exist")]
    NoSuchResource(String),
    /// The stack has been shut down.
    #[error("local storage is closed")]
    Closed,
}

impl OpenError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl SetupError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

impl From<StoreError> for SetupError {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}
