//! Table `workspaces`, welcome mails: `mail_day` (UTC) and `mails_sent` of a workspace's own item. The transaction that
//! creates a client counts the client's mail in the write that takes the seat, which makes the limit exact at no cost.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::db::{ItemWrite, n, s};
use crate::workspace::StoredWorkspace;

/// The mails that a workspace's item counts.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct MailsSent {
    #[serde(default)]
    mail_day: Option<NaiveDate>,
    #[serde(default)]
    mails_sent: u32,
}

/// A welcome mail that a creation is to count.
#[derive(Debug, Clone, Copy)]
pub struct WelcomeMail {
    day: NaiveDate,
    is_first_of_day: bool,
    most: u32,
}

impl StoredWorkspace {
    /// One more welcome mail, of which a workspace may send `most` in a UTC day. `None`: the day's are used up. A
    /// function whose clock is behind counts for the day that another has begun.
    pub fn welcome_mail(&self, today: NaiveDate, most: u32) -> Option<WelcomeMail> {
        let MailsSent { mail_day, mails_sent } = self.mails;
        let begun = mail_day.filter(|day| *day >= today);
        let counted = if begun.is_some() { mails_sent } else { 0 };
        let mail = WelcomeMail { day: begun.unwrap_or(today), is_first_of_day: begun.is_none(), most };
        (counted < most).then_some(mail)
    }
}

impl WelcomeMail {
    /// Counts the mail in the write that takes the seat, if it counts as it did when the workspace was read.
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
