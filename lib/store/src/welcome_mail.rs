//! Table `workspaces`, welcome mails: `mail_day` (UTC) and `mails_sent` of a workspace's own item. The write that takes
//! a new client's seat counts the client's mail too, so the limit is exact and costs no write.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::db::{ItemWrite, n, s};

/// The mails that a workspace's item counts.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct MailsSent {
    #[serde(default)]
    mail_day: Option<NaiveDate>,
    #[serde(default)]
    mails_sent: u32,
}

/// A welcome mail that the creation of a client counts.
#[derive(Debug, Clone, Copy)]
pub struct WelcomeMail {
    day: NaiveDate,
    is_first_of_day: bool,
    most: u32,
}

impl MailsSent {
    /// Allows one more welcome mail; `None` if the workspace has sent `most` in this UTC day. A function whose clock is
    /// behind counts for the day that another function has begun.
    pub fn one_more(&self, today: NaiveDate, most: u32) -> Option<WelcomeMail> {
        let Self { mail_day, mails_sent } = *self;
        let begun = mail_day.filter(|day| *day >= today);
        let counted = if begun.is_some() { mails_sent } else { 0 };
        let mail = WelcomeMail { day: begun.unwrap_or(today), is_first_of_day: begun.is_none(), most };
        (counted < most).then_some(mail)
    }
}

impl WelcomeMail {
    /// Adds the count to the write that takes the seat, on condition that the counters are as they were read.
    pub(crate) fn counted_in(self, seat: ItemWrite<'_>) -> ItemWrite<'_> {
        let day = s(self.day.to_string());
        if self.is_first_of_day {
            let begun = seat.set("mail_day", day).set("mails_sent", n(1));
            begun.when("attribute_not_exists(mail_day) OR mail_day < :mail_day", [])
        } else {
            let values = [(":mail_day", day), (":most_mails", n(self.most))];
            seat.count("mails_sent").when("mail_day = :mail_day AND mails_sent < :most_mails", values)
        }
    }
}
