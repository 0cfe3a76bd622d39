//! What calls to DynamoDB consume, told to the line of the event that they are made for. Every request asks for it; a refused one is not
//! told, and counts as a call alone.

use aws_sdk_dynamodb::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use aws_sdk_dynamodb::operation::batch_write_item::BatchWriteItemOutput;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemOutput;
use aws_sdk_dynamodb::operation::get_item::GetItemOutput;
use aws_sdk_dynamodb::operation::put_item::PutItemOutput;
use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::operation::scan::ScanOutput;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsOutput;
use aws_sdk_dynamodb::operation::update_item::UpdateItemOutput;
use aws_sdk_dynamodb::types::ConsumedCapacity;
use aws_smithy_runtime_api::client::interceptors::context::Output;
use aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint;
use runtime::{BoxError, add_call};

/// Counts each attempt at a call, repeats by the SDK included.
#[derive(Debug)]
pub(crate) struct Metering;

#[dyn_dispatch_hint]
impl Intercept for Metering {
    fn name(&self) -> &'static str {
        "Metering"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let output = context.output_or_error().and_then(Result::ok);
        let (read_units, write_units) = output.map_or((0.0, 0.0), |output| (read_units(output), write_units(output)));
        add_call(read_units, write_units);
        Ok(())
    }
}

fn read_units(output: &Output) -> f64 {
    if let Some(got) = output.downcast_ref::<GetItemOutput>() {
        units(got.consumed_capacity())
    } else if let Some(found) = output.downcast_ref::<QueryOutput>() {
        units(found.consumed_capacity())
    } else if let Some(found) = output.downcast_ref::<ScanOutput>() {
        units(found.consumed_capacity())
    } else if let Some(got) = output.downcast_ref::<BatchGetItemOutput>() {
        units(got.consumed_capacity())
    } else {
        0.0
    }
}

fn write_units(output: &Output) -> f64 {
    if let Some(updated) = output.downcast_ref::<UpdateItemOutput>() {
        units(updated.consumed_capacity())
    } else if let Some(written) = output.downcast_ref::<TransactWriteItemsOutput>() {
        units(written.consumed_capacity())
    } else if let Some(put) = output.downcast_ref::<PutItemOutput>() {
        units(put.consumed_capacity())
    } else if let Some(deleted) = output.downcast_ref::<DeleteItemOutput>() {
        units(deleted.consumed_capacity())
    } else if let Some(written) = output.downcast_ref::<BatchWriteItemOutput>() {
        units(written.consumed_capacity())
    } else {
        0.0
    }
}

fn units<'a>(consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) -> f64 {
    consumed.into_iter().filter_map(ConsumedCapacity::capacity_units).sum()
}
