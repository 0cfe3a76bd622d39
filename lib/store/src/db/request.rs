//! Sending of requests. Each request asks for its consumed capacity, which [`crate::metering`] counts.
//!
//! The SDK's future of a request takes five kilobytes. Each future that contains it would grow by that size, some of
//! them twice, so the request's future lives on the heap. It is not `dyn`: a `dyn` future would link the SDK's code for
//! a request twice.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::{
    batch_get_item, batch_write_item, delete_item, get_item, put_item, query, scan, transact_write_items, update_item,
};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;

/// A request that is ready to be sent.
pub(crate) trait MeteredRequest {
    type Output;
    type Error;

    /// Sends the request when the future is awaited.
    fn send_metered(self) -> impl Future<Output = Result<Self::Output, SdkError<Self::Error>>> + Send;
}

macro_rules! requests {
    ($($operation:ident: $request:ident $output:ident $error:ident,)*) => {$(
        impl MeteredRequest for $operation::builders::$request {
            type Output = $operation::$output;
            type Error = $operation::$error;

            fn send_metered(self) -> impl Future<Output = Result<Self::Output, SdkError<Self::Error>>> + Send {
                Box::pin(self.return_consumed_capacity(ReturnConsumedCapacity::Total).send())
            }
        }
    )*};
}

requests! {
    batch_get_item: BatchGetItemFluentBuilder BatchGetItemOutput BatchGetItemError,
    batch_write_item: BatchWriteItemFluentBuilder BatchWriteItemOutput BatchWriteItemError,
    delete_item: DeleteItemFluentBuilder DeleteItemOutput DeleteItemError,
    get_item: GetItemFluentBuilder GetItemOutput GetItemError,
    put_item: PutItemFluentBuilder PutItemOutput PutItemError,
    query: QueryFluentBuilder QueryOutput QueryError,
    scan: ScanFluentBuilder ScanOutput ScanError,
    transact_write_items: TransactWriteItemsFluentBuilder TransactWriteItemsOutput TransactWriteItemsError,
    update_item: UpdateItemFluentBuilder UpdateItemOutput UpdateItemError,
}
