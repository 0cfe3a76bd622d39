//! `GET /v1/test/mail`: the mails that the live service would have sent, newest first.

use domain::cursor::CursorList;
use domain::list::MAIL_PAGE;
use domain::sandbox::StoredMailList;
use edge::{Inbound, KeyHolder, Problem, Reply};
use store::stored_mail::MailPage;

use crate::App;

pub(crate) async fn list(app: App, caller: KeyHolder, inbound: Inbound) -> Result<Reply, Problem> {
    inbound.only_known_parameters()?;
    let coach = &caller.key.coach_id;
    let list = CursorList { name: "test_mail", coach };
    let position = |text: &str| Some(text.to_owned()).filter(|text| text.contains('#'));
    let after = list.parse(inbound.query("cursor").as_deref(), position)?;
    let limit = MAIL_PAGE.parse(inbound.query("limit").as_deref()) as usize;
    let MailPage { data, next } = app.mails.page(coach, after.as_deref(), limit).await?;
    Reply::ok(&StoredMailList { data, next_cursor: next.map(|next| list.cursor(&next)) })
}
