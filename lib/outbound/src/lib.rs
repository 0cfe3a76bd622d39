//! Effects on the world outside by way of AWS: the queues, the bus, mail. When to use them is decided elsewhere.

pub mod bus;
pub mod delivery;
pub mod mail;
pub mod queue;
pub mod sweep;

/// A request that waits on the heap: the SDK's future of one is five kilobytes, and would be moved with every future
/// around it. The type is opaque, so that the compiler need not look through the SDK's futures again in each of those.
fn on_the_heap<T>(request: impl Future<Output = T> + Send) -> impl Future<Output = T> + Send {
    Box::pin(request)
}
