//! The operator's consent to an act: a reason on the command line, and an answer at the terminal.

use std::io::BufRead;

use domain::audit::AuditDetail;

use crate::failure::Failure;
use crate::options::Consent;
use crate::output::say;

impl Consent {
    /// Says what is about to happen, and waits for a yes. Anything else, or no answer, declines.
    pub(crate) fn ask(&self, stack: &str, what: &str) -> Result<(), Failure> {
        let what = format!("stack {stack}: {what}");
        if self.yes {
            say(&format!("{what}."));
            return Ok(());
        }
        say(&format!("{what}. Go on? (y/n)"));
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        match read {
            Ok(_) if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") => Ok(()),
            Ok(_) | Err(_) => Err(Failure::declined("not confirmed, nothing was changed")),
        }
    }

    /// The details of the act's audit line.
    pub(crate) fn detail(&self, detail: AuditDetail) -> AuditDetail {
        AuditDetail { reason: Some(self.reason.clone()), ..detail }
    }
}
