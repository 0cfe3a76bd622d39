//! Writes of several items by one request: BatchExecuteStatement, which takes them as PartiQL.
//!
//! A short cut, and no more than that. Each statement stands for itself. What came of it is known where it was done or its condition
//! failed; of anything else (another transaction, no capacity, no answer, no permission) nothing is, and that write is made alone, with
//! its retries. It may have been done all the same: an update that must not be made twice knows its own by an owner that is drawn for it.
//!
//! What is made alone takes its time, and nobody else's: callers get an [`Answer`] for each, to wait for where it is needed.

use std::collections::HashSet;

use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementErrorCodeEnum, BatchStatementRequest, BatchStatementResponse,
    ReturnValuesOnConditionCheckFailure,
};
use futures::future::{BoxFuture, FutureExt, join_all};
use runtime::{error_chain, without_message};

use crate::db::{Ask, Db, Item, StoreError, Written, s};

/// Statements that one request takes.
const MAX_STATEMENTS: usize = 25;

/// A write of one item, to be made with others.
pub struct Statement {
    /// Table and key.
    item: (String, String, Option<String>),
    text: String,
    parameters: Vec<AttributeValue>,
}

/// What came of a statement, with the item where it was asked for; `None` where that is not known.
pub(crate) type Known = Option<Written<Option<Item>>>;

/// What came of a statement, as far as that is known; whoever made it knows what to make of it. Where it is not known, the write has to be
/// made alone.
#[derive(Default)]
pub struct Tried(pub(crate) Known);

/// What came of one of several requests that were made together.
pub enum Answer<'a, T> {
    /// It is known.
    Here(Result<T, StoreError>),
    /// It is made alone.
    Awaited(BoxFuture<'a, Result<T, StoreError>>),
}

impl<'a, T> Answer<'a, T> {
    pub(crate) fn awaited(alone: impl Future<Output = Result<T, StoreError>> + Send + 'a) -> Self {
        Self::Awaited(alone.boxed())
    }

    /// Waits for it, if it is still to come.
    pub async fn get(self) -> Result<T, StoreError> {
        match self {
            Self::Here(answer) => answer,
            Self::Awaited(answer) => answer.await,
        }
    }
}

impl Statement {
    /// An update of the item `pk`, `sk`, if `condition` holds of it; one that is not there is not made. `changes` and `condition` have a `?`
    /// for each of their values.
    pub(crate) fn update(
        (table, pk, sk): (&str, String, String),
        (changes, set): (&str, Vec<AttributeValue>),
        (condition, tested): (&str, Vec<AttributeValue>),
    ) -> Self {
        let mut parameters = set;
        parameters.extend([s(&pk), s(&sk)]);
        parameters.extend(tested);
        let text = format!(r#"UPDATE "{table}" {changes} WHERE pk = ? AND sk = ? AND {condition}"#);
        Self { item: (table.to_owned(), pk, Some(sk)), text, parameters }
    }

    /// A new item `pk`, `sk`, which both are among its attributes; where one is there it stays as it is, and what came of it counts as not known.
    pub(crate) fn insert((table, pk, sk): (&str, String, String), item: Item) -> Self {
        let (names, parameters): (Vec<String>, Vec<AttributeValue>) =
            item.into_iter().map(|(name, value)| (format!("'{name}': ?"), value)).unzip();
        let text = format!(r#"INSERT INTO "{table}" VALUE {{{}}}"#, names.join(", "));
        Self { item: (table.to_owned(), pk, Some(sk)), text, parameters }
    }

    /// No more item `pk`, of a table without sort keys.
    pub(crate) fn delete(table: &str, pk: String) -> Self {
        let (text, parameters) = (format!(r#"DELETE FROM "{table}" WHERE pk = ?"#), vec![s(&pk)]);
        Self { item: (table.to_owned(), pk, None), text, parameters }
    }

    /// The same, and the item as it then is.
    pub(crate) fn returning(self) -> Self {
        Self { text: format!("{} RETURNING ALL NEW *", self.text), ..self }
    }

    fn request(self) -> BatchStatementRequest {
        let request = BatchStatementRequest::builder().statement(self.text).set_parameters(Some(self.parameters));
        let request = request.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        request.build().expect("a statement is given")
    }
}

impl Db {
    /// Tries each of the statements; what came of them, in their order. One alone is left to its caller, as is a second one for an item.
    pub async fn try_all(&self, statements: Vec<Statement>) -> Vec<Tried> {
        let mut tried: Vec<Tried> = statements.iter().map(|_| Tried::default()).collect();
        let mut items = HashSet::new();
        let mut sent: Vec<(usize, Statement)> =
            statements.into_iter().enumerate().filter(|(_, statement)| items.insert(statement.item.clone())).collect();
        let mut requests = Vec::new();
        while sent.len() > 1 {
            let (places, statements): (Vec<usize>, Vec<Statement>) =
                sent.drain(..sent.len().min(MAX_STATEMENTS)).unzip();
            requests.push(async move { (places, self.ask(statements).await) });
        }
        for (places, answers) in join_all(requests).await {
            for (place, answer) in places.into_iter().zip(answers) {
                if let Some(tried) = tried.get_mut(place) {
                    *tried = Tried(read(answer));
                }
            }
        }
        tried
    }

    async fn ask(&self, statements: Vec<Statement>) -> Vec<BatchStatementResponse> {
        let requests = statements.into_iter().map(Statement::request).collect();
        let asking = self.client().batch_execute_statement().set_statements(Some(requests));
        match asking.ask().await {
            Ok(answer) => answer.responses.unwrap_or_default(),
            Err(error) => {
                let error = without_message(error);
                tracing::warn!(error = error_chain(&*error), "statements are carried out one by one");
                Vec::new()
            }
        }
    }
}

fn read(answer: BatchStatementResponse) -> Known {
    let Some(error) = answer.error else { return Some(Written::Done(answer.item)) };
    match error.code {
        // Of an item that is not there none is returned, nor of one that somehow is not: the update alone tells these apart.
        Some(BatchStatementErrorCodeEnum::ConditionalCheckFailed) => {
            error.item.map(|item| Written::Refused(Some(item)))
        }
        Some(
            BatchStatementErrorCodeEnum::DuplicateItem
            | BatchStatementErrorCodeEnum::TransactionConflict
            | BatchStatementErrorCodeEnum::ThrottlingError
            | BatchStatementErrorCodeEnum::ProvisionedThroughputExceeded
            | BatchStatementErrorCodeEnum::RequestLimitExceeded
            | BatchStatementErrorCodeEnum::InternalServerError,
        ) => None,
        code => {
            let code = code.map(|code| code.as_str().to_owned()).unwrap_or_default();
            tracing::warn!(code, "a statement was refused, and its write is made alone");
            None
        }
    }
}
