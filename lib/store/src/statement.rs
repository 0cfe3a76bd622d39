//! Conditional updates of several items by one request: BatchExecuteStatement, which takes them as PartiQL.
//!
//! A short cut, and no more than that. Each statement stands for itself and is tried once. What came of it is known where it was done or
//! its condition failed; of anything else (another transaction, no capacity, no answer, no permission) nothing is, and the caller makes
//! that update alone, with its retries. A statement may have been done all the same: updates know their own.

use std::collections::HashSet;

use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementErrorCodeEnum, BatchStatementRequest, BatchStatementResponse, ReturnConsumedCapacity,
    ReturnValuesOnConditionCheckFailure,
};
use futures::future::join_all;
use runtime::error_chain;

use crate::db::{Db, Item, Written, s};

/// Statements that one request takes.
const MAX_STATEMENTS: usize = 25;

/// An update of one item.
pub(crate) struct Statement {
    item: (String, String, String),
    text: String,
    parameters: Vec<AttributeValue>,
}

/// What came of a statement, with the item where it was asked for; `None` where that is not known.
pub(crate) type Tried = Option<Written<Option<Item>>>;

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
        Self { item: (table.to_owned(), pk, sk), text, parameters }
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
    pub(crate) async fn try_all(&self, statements: Vec<Statement>) -> Vec<Tried> {
        let mut tried: Vec<Tried> = statements.iter().map(|_| None).collect();
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
                    *tried = read(answer);
                }
            }
        }
        tried
    }

    async fn ask(&self, statements: Vec<Statement>) -> Vec<BatchStatementResponse> {
        let requests = statements.into_iter().map(Statement::request).collect();
        let asking = self.client().batch_execute_statement().set_statements(Some(requests));
        match asking.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await {
            Ok(answer) => answer.responses.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(error = error_chain(&error), "updates are made one by one");
                Vec::new()
            }
        }
    }
}

fn read(answer: BatchStatementResponse) -> Tried {
    let Some(error) = answer.error else { return Some(Written::Done(answer.item)) };
    match error.code {
        Some(BatchStatementErrorCodeEnum::ConditionalCheckFailed) => Some(Written::Refused(error.item)),
        Some(
            BatchStatementErrorCodeEnum::TransactionConflict
            | BatchStatementErrorCodeEnum::ThrottlingError
            | BatchStatementErrorCodeEnum::ProvisionedThroughputExceeded
            | BatchStatementErrorCodeEnum::RequestLimitExceeded
            | BatchStatementErrorCodeEnum::InternalServerError,
        ) => None,
        code => {
            let code = code.map(|code| code.as_str().to_owned()).unwrap_or_default();
            tracing::warn!(code, reason = error.message, "a statement was refused, and its update is made alone");
            None
        }
    }
}
