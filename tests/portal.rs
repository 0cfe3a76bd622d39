//! The portal: the page for coaches, its files, and who may frame it. `tests/browser` has its screens.

use serde_json::json;

use crate::world::{Reply, World};

const PAGE: &str = "/portal";

/// Values of an attribute that begin with the folder of the page's files.
fn files(html: &str) -> Vec<&str> {
    let starts = html.match_indices("\"/portal/assets/").map(|(at, _)| &html[at + 1..]);
    starts.map(|rest| rest.split('"').next().unwrap()).collect()
}

async fn page(world: &World) -> Reply {
    world.anonymous().get(PAGE).await.expect(200)
}

#[tokio::test]
async fn the_page_is_framed_by_the_application_alone_and_loads_from_its_own_origin_alone() {
    let world = World::start().await;
    let page = page(&world).await;
    let origin = world.base_url();
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors {origin}; require-trusted-types-for 'script'"
    );
    assert_eq!(page.header("content-security-policy"), Some(policy.as_str()));
    assert!(page.text.contains(&format!("<meta name=\"application-origin\" content=\"{origin}\">")));
    assert!(!page.text.contains("style=") && !page.text.contains("<script>") && !page.text.contains("{{"));
}

#[tokio::test]
async fn the_page_is_revalidated_and_its_files_are_kept_for_good() {
    let world = World::start().await;
    let page = page(&world).await;
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let again = world.anonymous().get(PAGE).header("if-none-match", page.header("etag").unwrap()).await.expect(304);
    assert_eq!(again.header("cache-control"), Some("no-cache"));
    let files = files(&page.text);
    assert_eq!(files.len(), 3, "{files:?}");
    for path in files {
        let file = world.anonymous().get(path).header("accept-encoding", "gzip").await.expect(200);
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(file.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(file.header("cache-control"), Some("public, max-age=31536000, immutable"), "{path}");
        assert_eq!(file.header("content-encoding"), Some("gzip"), "{path}");
        let media_type = match path.rsplit_once('.').unwrap().1 {
            "css" => "text/css; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "svg" => "image/svg+xml",
            other => panic!("a file of an unknown kind: {other}"),
        };
        assert_eq!(file.header("content-type"), Some(media_type), "{path}");
    }
}

#[tokio::test]
async fn the_page_knows_no_session_and_calls_nothing() {
    let world = World::start().await;
    let page = page(&world).await;
    let coach = world.coach("ada").await;
    assert_eq!(coach.settings().await.get(PAGE).await.expect(200).text, page.text);
    for invocation in world.calls("portal").await {
        assert_eq!(invocation["calls"], json!([]));
    }
}

#[tokio::test]
async fn a_file_of_another_release_is_not_found() {
    let world = World::start().await;
    for path in ["/portal/assets/0123456789abcdef-portal.js", "/portal/assets/main.js", "/portal/assets/%2e%2e"] {
        world.anonymous().get(path).await.refused(404, "not_found");
    }
    world.anonymous().get("/portal/").await.refused(404, "unknown_path");
}
