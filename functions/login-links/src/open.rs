//! Opens a login link: finds its grant and checks that the grant still holds.

use domain::login_link::{LOGIN_LINK_LIFE, LoginGrant, LoginToken};
use domain::time::Timestamp;
use domain::workspace::Workspace;
use edge::{Page, Problem};
use futures::future::try_join;
use http::StatusCode;

use crate::App;

/// A link that can be used now.
pub(crate) struct Opened {
    pub(crate) token: LoginToken,
    pub(crate) grant: LoginGrant,
    pub(crate) workspace: Workspace,
}

impl App {
    /// The usable link of a token. `None` if the link is unknown, used, expired or ended; callers cannot tell which.
    pub(crate) async fn open(&self, token: &str, now: Timestamp) -> Result<Option<Opened>, Problem> {
        let Some(token) = LoginToken::parse(token) else { return Ok(None) };
        let Some(grant) = self.links.get(&token).await? else { return Ok(None) };
        runtime::note("coach_id", grant.coach_id.as_str());
        let reads = try_join(self.clients.get(&grant.client_id), self.workspaces.get(&grant.coach_id));
        let (client, workspace) = reads.await?;
        if !client.is_some_and(|found| grant.holds(&found.client, found.login_epoch, now)) {
            return Ok(None);
        }
        let workspace =
            workspace.ok_or_else(|| Problem::internal("open a login link", "the link's workspace is missing"))?;
        Ok(Some(Opened { token, grant, workspace: workspace.workspace }))
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
