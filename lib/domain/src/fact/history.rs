//! Facts of a client's history: check-ins, logs, doses, phases, messages.

use chrono::NaiveDate;
use serde::{Deserialize, Deserializer};

use crate::check_in::CheckInSubmitted;
use crate::client::PhaseAdvance;
use crate::dose::{DoseSchedule, MAX_SCHEDULED_DOSES, STORED_AFTER_END};
use crate::fact_time::FactTime;
use crate::fact_values::{date, objects};
use crate::fields::Invalid;
use crate::id::{CheckInId, DoseId, DoseLogId, MessageId};
use crate::time::Timestamp;

/// An entry of a client's stored history.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub enum ClientHappening {
    #[serde(rename = "check_in.submitted")]
    CheckInSubmitted(CheckInSubmitted),
    #[serde(rename = "check_in.reviewed")]
    CheckInReviewed { check_in_id: CheckInId, reviewed_at: Timestamp },
    #[serde(rename = "check_in.deleted")]
    CheckInDeleted { check_in_id: CheckInId },
    #[serde(rename = "daily_log.saved")]
    DailyLogSaved {
        #[serde(deserialize_with = "date")]
        date: NaiveDate,
    },
    #[serde(rename = "daily_log.deleted")]
    DailyLogDeleted {
        #[serde(deserialize_with = "date")]
        date: NaiveDate,
    },
    #[serde(rename = "dose_schedule.saved")]
    DoseScheduleSaved {
        #[serde(deserialize_with = "doses")]
        doses: DoseSchedule,
    },
    #[serde(rename = "dose.logged")]
    DoseLogged(DoseLogged),
    #[serde(rename = "dose_log.deleted")]
    DoseLogDeleted { dose_log_id: DoseLogId },
    #[serde(rename = "phase.advanced")]
    PhaseAdvanced(PhaseAdvance),
    #[serde(rename = "message.received")]
    MessageReceived { message_id: MessageId, received_at: Timestamp },
    #[serde(rename = "client.erased")]
    Erased {},
}

/// A log of a dose.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DoseLogged {
    #[serde(rename = "dose_log_id")]
    pub dose_log: DoseLogId,
    #[serde(rename = "dose_id")]
    pub dose: DoseId,
    #[serde(deserialize_with = "date")]
    pub date: NaiveDate,
}

impl ClientHappening {
    /// Drops what is not stored of a fact of that time: doses that ended long before.
    pub(super) fn stored_at(mut self, at: FactTime) -> Result<Self, Invalid> {
        if let Self::DoseScheduleSaved { doses: DoseSchedule(doses) } = &mut self {
            let saved_on = at.timestamp().utc().date_naive();
            doses.retain(|dose| dose.until.is_none_or(|until| saved_on - until <= STORED_AFTER_END));
            if doses.len() > MAX_SCHEDULED_DOSES {
                let (days, given) = (STORED_AFTER_END.num_days(), doses.len());
                let rule = format_args!(
                    "must be at most {MAX_SCHEDULED_DOSES}, not counting those that ended over {days} days ago; there are {given}"
                );
                return Err(Invalid::field("doses", rule));
            }
        }
        Ok(self)
    }
}

fn doses<'de, D: Deserializer<'de>>(input: D) -> Result<DoseSchedule, D::Error> {
    Ok(DoseSchedule(objects::<{ usize::MAX }, _, _>(input)?))
}
