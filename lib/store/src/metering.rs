//! Adds the capacity that calls to DynamoDB consume to the log line of the invocation's event. Every request asks for
//! its consumed capacity. A refused request returns none, and counts as a call only.

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

/// The units of an output, if the output has one of these types.
macro_rules! consumed {
    ($output:ident: $($of:ty)*) => {
        None$(.or_else(|| $output.downcast_ref::<$of>().map(|output| units(output.consumed_capacity()))))*.unwrap_or(0.0)
    };
}

fn read_units(output: &Output) -> f64 {
    consumed!(output: GetItemOutput QueryOutput ScanOutput BatchGetItemOutput)
}

fn write_units(output: &Output) -> f64 {
    consumed!(output: UpdateItemOutput TransactWriteItemsOutput PutItemOutput DeleteItemOutput BatchWriteItemOutput)
}

fn units<'a>(consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) -> f64 {
    consumed.into_iter().filter_map(ConsumedCapacity::capacity_units).sum()
}
