//! The answer with the key's coach and scope.

use serde::Serialize;

use crate::api_key::Scope;
use crate::id::CoachId;

/// A valid key and its coach.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct PingResult {
    /// Always true: an invalid key has an error status.
    pub ok: bool,
    pub coach: PingCoach,
    /// Clients on the active roster.
    pub active_clients: u32,
    /// The scope of the key.
    pub scope: Scope,
}

/// The coach that a key belongs to.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct PingCoach {
    /// Identifies the coach. It is the coach's id in the application.
    pub id: CoachId,
    /// The coach's e-mail address.
    pub email: String,
    /// The name of the coach's workspace. It may be empty.
    pub name: String,
}
crate::discreet! { PingCoach }
