//! Login links: the live service leads to the application, and a sandbox says whom it would have led there.

use std::future::IntoFuture;

use domain::mode::Mode;
use futures::future::join_all;

use crate::feed::erasure::erased;
use crate::partner::login_pages::{LIFE_S, expect_dead, expect_private, link};
use crate::sandbox::start;
use crate::world::{Caller, Fact, World};

/// A link to a client's account that was used.
async fn used_link(world: &World, key: &Caller, client: &str) -> String {
    let link = link(key, client).await;
    let verified = world.anonymous().call("POST", &link).await.expect(303);
    assert_eq!(verified.header("location"), Some(link.as_str()));
    link
}

#[tokio::test]
async fn a_link_is_used_once_and_leads_to_the_application_or_in_a_sandbox_to_itself() {
    for mode in Mode::ALL {
        let world = start(mode).await;
        let key = world.coach("ada").await.partner_key().await;
        world.apply([Fact::client("ada", "c1")]).await;
        let link = link(&key, "c1").await;
        let browser = world.anonymous();
        let unused = browser.get(&link).await.expect(200).text;
        assert!(unused.contains("<form method=\"post\">") && !unused.contains("Client c1"), "{unused}");
        let posts = join_all((0..5).map(|_| browser.call("POST", &link).into_future())).await;
        let mut statuses: Vec<u16> = posts.iter().map(|post| post.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [303, 410, 410, 410, 410], "{mode:?}");
        let verified = posts.iter().find(|post| post.status == 303).unwrap();
        expect_private(verified);
        assert_eq!(verified.text, "");
        let location = verified.header("location").unwrap();
        match mode {
            Mode::Live => {
                assert!(location.starts_with("https://ada.example/session#token="), "{location}");
                expect_dead(&world, &link).await;
            }
            Mode::Test => {
                assert_eq!(location, link);
                assert!(browser.get(&link).await.expect(200).text.contains("Client c1"));
                browser.call("POST", &link).await.expect(410);
            }
        }
    }
}

#[tokio::test]
async fn the_page_of_a_used_link_says_who_would_be_signed_in_and_where() {
    let world = start(Mode::Test).await;
    let key = world.coach("ada").with("name", "Ada <b>& Sons</b>").await.partner_key().await;
    let named = Fact::client("ada", "c1").with("full_name", "Gwen <i>\"Testperson\"</i>");
    world.apply([named, Fact::client("ada", "nameless").with("full_name", "")]).await;
    let browser = world.anonymous();
    for (client, shown) in [("c1", "Gwen &lt;i&gt;&quot;Testperson&quot;&lt;/i&gt;"), ("nameless", "nameless")] {
        let link = used_link(&world, &key, client).await;
        for _ in 0..2 {
            let page = browser.get(&link).await.expect(200);
            let head = browser.call("HEAD", &link).await.expect(200);
            assert_eq!(head.text, "");
            for reply in [&page, &head] {
                expect_private(reply);
                assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
            }
            for text in [
                format!("<title>You would be signed in as {shown}</title>"),
                format!("<h1>You would be signed in as <bdi>{shown}</bdi></h1>"),
                "This is a sandbox".to_owned(),
                "<code>https://ada.example/session</code>".to_owned(),
                "<bdi>Ada &lt;b&gt;&amp; Sons&lt;/b&gt;</bdi>".to_owned(),
            ] {
                assert!(page.text.contains(&text), "no {text} in {}", page.text);
            }
            assert!(!page.text.contains("<form") && !page.text.contains("<script"), "{}", page.text);
        }
    }
}

#[tokio::test]
async fn a_used_link_of_a_sandbox_ends_with_its_time_and_with_the_state_of_its_client() {
    let world = start(Mode::Test).await;
    let key = world.coach("ada").await.partner_key().await;
    world.coach("bob").await;
    for (client, end) in [
        ("c1", Fact::client("ada", "c1").with("is_active", false)),
        ("c2", Fact::client("ada", "c2").with("email", "other@clients.example")),
        ("c3", Fact::client("bob", "c3")),
        ("c4", erased("c4")),
    ] {
        world.apply([Fact::client("ada", client)]).await;
        let used = used_link(&world, &key, client).await;
        world.anonymous().get(&used).await.expect(200);
        world.apply([end]).await;
        expect_dead(&world, &used).await;
    }
    world.apply([Fact::client("ada", "c5")]).await;
    let used = used_link(&world, &key, "c5").await;
    world.advance_s(LIFE_S - 30).await;
    world.anonymous().get(&used).await.expect(200);
    world.advance_s(30).await;
    expect_dead(&world, &used).await;
}
