//! `GET /v1/test/mail`: the mails that the live service would have sent, newest first.

use domain::cursor::CursorList;
use domain::list::MAIL_PAGE;
use domain::sandbox::StoredMailList;
use edge::{Inbound, KeyHolder, Problem, Reply};
use store::stored_mail::MailPage;

use crate::App;

/// Longest position: a time and digits.
const MAX_POSITION_BYTES: usize = 64;

pub(crate) async fn list(app: App, caller: KeyHolder, inbound: Inbound) -> Result<Reply, Problem> {
    inbound.only_known_parameters()?;
    let coach = &caller.key.coach_id;
    let list = CursorList { name: "test_mail", coach };
    let is_formed = |text: &String| text.len() <= MAX_POSITION_BYTES && text.contains('#');
    let position = |text: &str| Some(text.to_owned()).filter(is_formed);
    let after = list.parse(inbound.query("cursor").as_deref(), position)?;
    let limit = MAIL_PAGE.parse(inbound.query("limit").as_deref()) as usize;
    let MailPage { data, next } = app.mails.page(coach, after.as_deref(), limit, caller.now).await?;
    Reply::ok(&StoredMailList { data, next_cursor: next.map(|next| list.cursor(&next)) })
}
