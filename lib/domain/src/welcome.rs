//! The mail to a new client: the sign-in page, the credentials, and the link to the intake.

mod mail_name;

use crate::account::TempPassword;
use crate::email::Email;
use crate::html::escape;
use crate::intake::IntakeToken;
use crate::workspace::CanonicalHost;
use mail_name::mail_name;

/// A mail as text and as HTML.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// The content of the welcome mail.
pub struct Welcome<'a> {
    pub coach_name: &'a str,
    pub client_name: &'a str,
    pub email: &'a Email,
    pub password: &'a TempPassword,
    pub host: &'a CanonicalHost,
    pub intake: &'a IntakeToken,
}

impl Welcome<'_> {
    pub fn render(&self) -> Mail {
        let coach = mail_name(self.coach_name).unwrap_or_else(|| "Your coach".to_owned());
        let hello = mail_name(self.client_name).map_or_else(|| "Hello".to_owned(), |client| format!("Hello {client}"));
        let (email, password, host) = (self.email.as_str(), self.password.expose(), self.host.as_str());
        let intake = self.intake.url(self.host);
        let text = format!(
            "{hello},\n\n{coach} has created an account for you.\n\nSign in:   {host}\nE-mail:    {email}\nPassword:  {password}\n\n\
             You will be asked to choose a password of your own when you first sign in.\n\n\
             Before you start, please fill in your intake form:\n{intake}\n\nIf you did not expect this mail, you can ignore it.\n"
        );
        let [coach_html, hello_html, email_html, password_html] = [&*coach, &hello, email, password].map(escape);
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Your account with {coach_html}</title></head>\n\
             <body style=\"font-family:system-ui,sans-serif;line-height:1.5;color:#1c1c1c;max-width:36rem;margin:2rem auto;padding:0 1rem\">\n\
             <p>{hello_html},</p>\n<p>{coach_html} has created an account for you.</p>\n\
             <table cellpadding=\"4\"><tr><th align=\"left\">Sign in</th><td><a href=\"{host}\">{host}</a></td></tr>\n\
             <tr><th align=\"left\">E-mail</th><td>{email_html}</td></tr>\n\
             <tr><th align=\"left\">Password</th><td><code>{password_html}</code></td></tr></table>\n\
             <p>You will be asked to choose a password of your own when you first sign in.</p>\n\
             <p>Before you start, please <a href=\"{intake}\">fill in your intake form</a>.</p>\n\
             <p style=\"color:#666\">If you did not expect this mail, you can ignore it.</p>\n</body></html>\n"
        );
        Mail { subject: format!("Your account with {coach}"), text, html }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_carry_the_credentials_and_a_name_cannot_break_out() {
        let email = Email::parse("ada@example.com").unwrap();
        let password = TempPassword::restore("abcd-efgh-jkmn-pqrs".to_owned());
        let host = CanonicalHost::parse("https://coach.example.com").unwrap();
        let intake = IntakeToken::new(&[1; 32]);
        let welcome = Welcome {
            coach_name: "Grace\r\nBcc: all@example.com",
            client_name: "<script>alert('x')</script>",
            email: &email,
            password: &password,
            host: &host,
            intake: &intake,
        };
        let mail = welcome.render();
        for body in [&mail.text, &mail.html] {
            assert!(body.contains("ada@example.com") && body.contains("abcd-efgh-jkmn-pqrs"));
            assert!(body.contains(&intake.url(&host)));
        }
        assert!(!mail.subject.contains('\n') && !mail.html.contains("<script>"));
    }
}
