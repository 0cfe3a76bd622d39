//! Effects through AWS: queues, the bus, mail. Callers decide when to use them.

pub mod bus;
pub mod delivery;
pub mod mail;
pub mod queue;
pub mod sweep;
pub mod wipe;

/// Boxes the future of a request. The SDK's future takes five kilobytes, and every future around it would contain and
/// move them. The opaque return type keeps the compiler from analysing the SDK's future again in each caller.
fn boxed<T>(request: impl Future<Output = T> + Send) -> impl Future<Output = T> + Send {
    Box::pin(request)
}
