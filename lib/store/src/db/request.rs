//! How every request is made: it asks what it consumes, which [`crate::metering`] notes, and waits on the heap.
//!
//! The SDK's future of a request is five kilobytes. Futures that contain it would have room for it, some more than
//! once; behind a pointer it is moved with none. It is no `dyn`, which would put the SDK's part of a request into a
//! function twice.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::{
    batch_get_item, batch_write_item, delete_item, get_item, put_item, query, scan, transact_write_items, update_item,
};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;

/// A request that is ready to be made.
pub(crate) trait MeteredRequest {
    type Output;
    type Error;

    /// Makes it once it is awaited.
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
