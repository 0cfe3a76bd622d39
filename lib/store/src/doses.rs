//! Table `records`, doses, for reading. pk `CLIENT#<client_id>`; sk `DOSES#<yyyy-mm>`: the number of logs of each dose
//! on each day of a month; sk `DOSES#SCHEDULE`: the client's dose schedule. Module `record` writes them.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::dose::{DoseSchedule, DosesLogged, Month, MonthOfDoses};
use domain::fact_time::FactTime;
use domain::id::DoseId;
use serde::{Deserialize, Serialize};

use crate::db::{Item, StoreError, from_item, number, sk_of};

/// Prefix of the sort keys of doses: months, then the schedule.
pub(crate) const DOSES_PREFIX: &str = "DOSES#";
pub(crate) const SCHEDULE: &str = "DOSES#SCHEDULE";

/// The schedule and the logs that compliance is computed from.
#[derive(Debug, Default)]
pub struct Doses {
    pub schedule: DoseSchedule,
    /// The months that were read.
    pub logged: DosesLogged,
}

/// A client's dose schedule, as stored.
#[derive(Serialize, Deserialize)]
pub struct StoredDoseSchedule {
    pub(crate) pk: String,
    pub(crate) sk: String,
    pub(crate) doses: DoseSchedule,
    pub saved_at: FactTime,
    pub(crate) version: u64,
}

/// The counts of a month, and the version of its item, 0 for none.
#[derive(Default)]
pub(crate) struct StoredMonth {
    pub(crate) counts: MonthOfDoses,
    pub(crate) version: u64,
}

impl Doses {
    /// Adds an item of a client's doses.
    pub(crate) fn add(&mut self, item: Item) -> Result<(), StoreError> {
        let sk = sk_of(&item).to_owned();
        if sk == SCHEDULE {
            self.schedule = from_item::<StoredDoseSchedule>("dose schedule", item)?.doses;
            return Ok(());
        }
        let month = sk.strip_prefix(DOSES_PREFIX).and_then(Month::parse);
        let month = month.ok_or_else(|| StoreError::corrupt("month of doses", "its key has another form"))?;
        self.logged.0.insert(month, StoredMonth::from_item(&item)?.counts);
        Ok(())
    }
}

impl StoredMonth {
    pub(crate) fn from_item(item: &Item) -> Result<Self, StoreError> {
        let corrupt = || StoreError::corrupt("month of doses", "its counts have another form");
        let counts = item.get("counts").and_then(|counts| counts.as_m().ok()).ok_or_else(corrupt)?;
        let doses = counts.iter().map(|(dose, bytes): (&String, &AttributeValue)| {
            Ok((DoseId::parse(dose).map_err(|_| corrupt())?, bytes.as_b().map_err(|_| corrupt())?.as_ref()))
        });
        let doses = doses.collect::<Result<Vec<_>, StoreError>>()?;
        let counts = MonthOfDoses::from_bytes(doses.into_iter()).ok_or_else(corrupt)?;
        Ok(Self { counts, version: number(item, "version").ok_or_else(corrupt)? })
    }
}

/// The sort key of a month.
pub(crate) fn month_sk(month: Month) -> String {
    format!("{DOSES_PREFIX}{month}")
}
