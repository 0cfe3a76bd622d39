//! Facts of a client's history: check-ins, logs, doses, phases, messages.

use chrono::NaiveDate;

use super::values::{MAX_NAME_CHARS, nullable, present};
use crate::check_in::CheckInSubmitted;
use crate::client::PhaseAdvance;
use crate::dose::{DoseSchedule, MAX_SCHEDULED_DOSES, STORED_AFTER_END, ScheduledDose};
use crate::fields::{Fields, Invalid};
use crate::id::{CheckInId, ClientId, DoseId, DoseLogId, InvalidId, MAX_ID_CHARS, MessageId};
use crate::time::Timestamp;

/// Most scores or grades of a check-in.
const MAX_SCORES: usize = 500;

/// An entry of a client's stored history.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientHappening {
    CheckInSubmitted(CheckInSubmitted),
    CheckInReviewed { check_in: CheckInId, reviewed_at: Timestamp },
    CheckInDeleted(CheckInId),
    DailyLogSaved(NaiveDate),
    DailyLogDeleted(NaiveDate),
    DoseScheduleSaved(DoseSchedule),
    DoseLogged(DoseLogged),
    DoseLogDeleted(DoseLogId),
    PhaseAdvanced(PhaseAdvance),
    MessageReceived { message: MessageId, received_at: Timestamp },
    Erased,
}

/// A log of a dose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoseLogged {
    pub dose_log: DoseLogId,
    pub dose: DoseId,
    pub date: NaiveDate,
}

/// Parses a fact about a client's history: the client and the entry. `None`: the name is another fact's.
pub(super) fn happening(detail_type: &str, fields: Fields<'_>) -> Option<Result<(ClientId, ClientHappening), Invalid>> {
    let read = match detail_type {
        "check_in.submitted" => check_in_submitted(fields),
        "check_in.reviewed" => check_in_reviewed(fields),
        "check_in.deleted" => id(fields, "check_in_id", CheckInId::parse).map(ClientHappening::CheckInDeleted),
        "daily_log.saved" => date(fields).map(ClientHappening::DailyLogSaved),
        "daily_log.deleted" => date(fields).map(ClientHappening::DailyLogDeleted),
        "dose_schedule.saved" => dose_schedule(fields).map(ClientHappening::DoseScheduleSaved),
        "dose.logged" => dose_logged(fields).map(ClientHappening::DoseLogged),
        "dose_log.deleted" => id(fields, "dose_log_id", DoseLogId::parse).map(ClientHappening::DoseLogDeleted),
        "phase.advanced" => phase_advanced(fields).map(ClientHappening::PhaseAdvanced),
        "message.received" => message_received(fields),
        "client.erased" => Ok(ClientHappening::Erased),
        _ => return None,
    };
    Some(read.and_then(|happening| Ok((id(fields, "client_id", ClientId::parse)?, happening))))
}

fn id<T>(fields: Fields<'_>, name: &str, parse: impl FnOnce(&str) -> Result<T, InvalidId>) -> Result<T, Invalid> {
    fields.required(name, MAX_ID_CHARS, parse)
}

fn date(fields: Fields<'_>) -> Result<NaiveDate, Invalid> {
    fields.required_date("date")
}

fn check_in_submitted(fields: Fields<'_>) -> Result<ClientHappening, Invalid> {
    Ok(ClientHappening::CheckInSubmitted(CheckInSubmitted {
        check_in: id(fields, "check_in_id", CheckInId::parse)?,
        submitted_at: fields.required_timestamp("submitted_at")?,
        scores: fields.required_numbers("scores", MAX_SCORES, MAX_ID_CHARS)?,
        grades: fields.required_numbers("grades", MAX_SCORES, MAX_ID_CHARS)?,
    }))
}

fn check_in_reviewed(fields: Fields<'_>) -> Result<ClientHappening, Invalid> {
    Ok(ClientHappening::CheckInReviewed {
        check_in: id(fields, "check_in_id", CheckInId::parse)?,
        reviewed_at: fields.required_timestamp("reviewed_at")?,
    })
}

fn dose_schedule(fields: Fields<'_>) -> Result<DoseSchedule, Invalid> {
    let doses = fields.required_objects("doses", "doses.", usize::MAX)?.into_iter().map(|dose| {
        present(dose, "until")?;
        Ok(ScheduledDose {
            dose_id: id(dose, "dose_id", DoseId::parse)?,
            per_day: dose.required_count("per_day")?,
            from: dose.required_date("from")?,
            until: dose.date("until")?,
        })
    });
    let mut doses = doses.collect::<Result<Vec<_>, Invalid>>()?;
    let saved_on = fields.required_timestamp("occurred_at")?.utc().date_naive();
    doses.retain(|dose| dose.until.is_none_or(|until| saved_on - until <= STORED_AFTER_END));
    if doses.len() > MAX_SCHEDULED_DOSES {
        let days = STORED_AFTER_END.num_days();
        let rule = format_args!(
            "must be at most {MAX_SCHEDULED_DOSES}, not counting those that ended over {days} days ago; there are {}",
            doses.len()
        );
        return Err(fields.refuse("doses", rule));
    }
    Ok(DoseSchedule(doses))
}

fn dose_logged(fields: Fields<'_>) -> Result<DoseLogged, Invalid> {
    Ok(DoseLogged {
        dose_log: id(fields, "dose_log_id", DoseLogId::parse)?,
        dose: id(fields, "dose_id", DoseId::parse)?,
        date: date(fields)?,
    })
}

fn phase_advanced(fields: Fields<'_>) -> Result<PhaseAdvance, Invalid> {
    Ok(PhaseAdvance {
        from_phase: nullable(fields, "from_phase", MAX_NAME_CHARS)?.map(str::to_owned),
        to_phase: fields.required_text("to_phase", MAX_NAME_CHARS)?.to_owned(),
        advanced_at: fields.required_timestamp("advanced_at")?,
    })
}

fn message_received(fields: Fields<'_>) -> Result<ClientHappening, Invalid> {
    Ok(ClientHappening::MessageReceived {
        message: id(fields, "message_id", MessageId::parse)?,
        received_at: fields.required_timestamp("received_at")?,
    })
}
