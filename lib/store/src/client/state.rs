//! State of a client: unknown, known, or erased for good.

use domain::client::{Client, Origin};
use domain::fact_time::FactTime;
use domain::time::Timestamp;

use super::item::ClientItem;

/// A client as stored.
#[derive(Debug, Clone)]
pub struct StoredClient {
    pub client: Client,
    /// Login links belong to an epoch, and end with it.
    pub login_epoch: u64,
    /// True if the API was the last to set the active flag, by a change or by the creation of the client.
    pub(super) flag_is_ours: bool,
    /// The later of the record's time and the time at which the API set the flag.
    flag_set_at: FactTime,
    /// The later of the record's time and the time of the last phase advance.
    pub(crate) phase_set_at: FactTime,
    pub(super) version: u64,
}

impl StoredClient {
    pub(super) fn new(record: ClientItem) -> Self {
        let client = &record.client;
        let made_here = client.origin == Origin::PartnerApi && record.saved_at() == client.created_at.into();
        Self {
            flag_is_ours: made_here || record.activation_set_at() > Some(record.saved_at()),
            flag_set_at: record.activation_set_at().map_or(record.saved_at(), |set_at| set_at.max(record.saved_at())),
            login_epoch: record.login_epoch,
            phase_set_at: record.phase_set_at().map_or(record.saved_at(), |set_at| set_at.max(record.saved_at())),
            version: record.version,
            client: record.client,
        }
    }

    /// The time at which the API sets the flag: later than all earlier writes of the flag, even if this function's
    /// clock is behind.
    pub(super) fn next_flag_time(&self, now: Timestamp) -> Timestamp {
        now.after(self.flag_set_at.timestamp())
    }
}

/// The state of a client.
#[derive(Debug)]
pub(crate) enum ClientState<T = StoredClient> {
    Unknown,
    /// No later fact restores the client.
    Erased,
    Known(T),
}
