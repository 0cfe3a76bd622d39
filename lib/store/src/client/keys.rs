//! Keys and dates of a client that operators read besides the record as it is shown.

use chrono::NaiveDate;
use domain::client::Client;
use domain::time::Timestamp;

use super::email_pk;
use super::external_id::lock_pk;
use super::item::{StoredClient, client_pk, intake_pk};
use crate::db::{self, Item};

impl StoredClient {
    /// The keys of the items about the client in this table: the record, the intake, and what may hold the address and
    /// the external id.
    pub(crate) fn keys(&self) -> Vec<Item> {
        let Client { id, coach_id, profile, .. } = &self.client;
        let email = profile.email.as_ref().map(|email| email_pk(&email.key()));
        let external_id = profile.external_id.as_ref().map(|external_id| lock_pk(coach_id, external_id));
        [client_pk(id), intake_pk(id)].into_iter().chain(email).chain(external_id).map(db::pk).collect()
    }

    /// The time of the client's present phase, and the date on which it began. `None`: the client has no phase.
    pub(crate) fn phase_set(&self) -> Option<(Timestamp, Option<NaiveDate>)> {
        let at = self.registers.phase.set_at()?.timestamp();
        self.client.phase.current.as_ref().map(|_| (at, self.client.phase.started_on))
    }
}
