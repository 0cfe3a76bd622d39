//! Errors for the host. Errors of the emulated services are responses: see [`crate::answer`].

/// The reason why the data directory cannot be used, as one line for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(String);

/// The reason why a resource of the template cannot be created, as one line for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(String);

/// A failure of the local stack's own storage.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite refused a statement.
    #[error("local storage: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// DynamoDB refused a call.
    #[error("local DynamoDB: {0}")]
    DynamoDb(String),
    /// The resource does not exist.
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
