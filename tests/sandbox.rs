//! A sandbox: the differences between the modes of a deployment, by both modes.

mod login_links;
mod portal;
mod webhooks;

use domain::mode::Mode;

use crate::world::World;

/// An empty world of this mode.
pub(crate) async fn start(mode: Mode) -> World {
    World::start_with_parameters(&[("Mode", mode.as_str())]).await
}
