//! Opens a login link: finds its grant and checks that the grant still holds.

use domain::client::Client;
use domain::login_link::{LOGIN_LINK_LIFE, LoginGrant, LoginToken};
use domain::time::Timestamp;
use domain::workspace::Workspace;
use edge::{Page, Problem};
use futures::future::try_join;
use http::StatusCode;
use store::login_link::CreatedLink;

use crate::App;

/// A link that has neither expired nor ended, with its client.
pub(crate) struct Opened {
    pub(crate) token: LoginToken,
    pub(crate) grant: LoginGrant,
    /// True in a sandbox alone: elsewhere a used link is not opened.
    pub(crate) is_used: bool,
    pub(crate) client: Client,
    pub(crate) workspace: Workspace,
}

impl App {
    /// The link of a token. `None` if the link is unknown, expired or ended, or used outside a sandbox; callers cannot
    /// tell which.
    pub(crate) async fn open(&self, token: &str, now: Timestamp) -> Result<Option<Opened>, Problem> {
        let Some(token) = LoginToken::parse(token) else { return Ok(None) };
        let created = self.links.get(&token).await?.filter(|link| self.is_sandbox || !link.is_used);
        let Some(CreatedLink { grant, is_used }) = created else { return Ok(None) };
        runtime::note("coach_id", grant.coach_id.as_str());
        let reads = try_join(self.clients.get(&grant.client_id), self.workspaces.get(&grant.coach_id));
        let (client, workspace) = reads.await?;
        let client = client.filter(|found| grant.holds(&found.client, found.login_epoch, now));
        let Some(client) = client.map(|found| found.client) else { return Ok(None) };
        let workspace =
            workspace.ok_or_else(|| Problem::internal("open a login link", "the link's workspace is missing"))?;
        Ok(Some(Opened { token, grant, is_used, client, workspace: workspace.workspace }))
    }
}

/// The page for a link that does not work.
pub(crate) fn dead_link() -> Page {
    let main = format!(
        "<h1>This link no longer works</h1>\n\
         <p>A login link works once, and for {} minutes. Please ask your coach for a new one.</p>",
        LOGIN_LINK_LIFE.num_minutes()
    );
    Page::new(StatusCode::GONE, "This link no longer works", main)
}
