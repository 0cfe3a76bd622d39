//! Login links: a link opens a page any number of times, signs its client in once, and expires.

use std::future::IntoFuture;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::join_all;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Value, json};

use crate::feed::erasure::erased;
use crate::partner::clients::login_link::{mint, start_with_client};
use crate::partner::start_with_key;
use crate::world::{Caller, Fact, Reply, SDK_ATTEMPTS, World, list, members};

pub(crate) const LIFE_S: u64 = 15 * 60;

/// Mints a link to a client's account and returns its path.
pub(crate) async fn link(key: &Caller, client: &str) -> String {
    let made = mint(key, client).await.expect(200);
    let url = made.str("login_url");
    format!("/login/{}", url.rsplit_once('/').unwrap().1)
}

/// The assertion in the answer to a verified link, and its target.
#[track_caller]
fn assertion(reply: &Reply) -> (String, String) {
    assert_eq!(reply.status, 303, "{}", reply.text);
    let (url, token) = reply.header("location").unwrap().split_once("#token=").unwrap();
    (url.to_owned(), token.to_owned())
}

/// Claims of an assertion, without a check of its signature.
fn claims(token: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap()).unwrap()
}

/// Asserts that a link is dead for every method.
pub(crate) async fn expect_dead(world: &World, link: &str) {
    let browser = world.anonymous();
    for method in ["GET", "HEAD", "POST"] {
        let reply = browser.call(method, link).await.expect(410);
        assert!(!reply.text.contains("<form") && !reply.text.contains("<button"), "{}", reply.text);
        expect_private(&reply);
    }
}

/// Asserts the headers of every page. `edge::page` tests its policy.
#[track_caller]
pub(crate) fn expect_private(reply: &Reply) {
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-robots-tag", "noindex"),
    ] {
        assert_eq!(reply.header(name), Some(value));
    }
    assert!(reply.header("content-security-policy").unwrap().starts_with("default-src 'none'; "), "{reply:?}");
}

#[tokio::test]
async fn a_link_signs_its_client_in_and_the_published_keys_verify_the_assertion() {
    let (world, key, client) = start_with_client().await;
    let link = link(&key, &client).await;
    let reply = world.anonymous().call("POST", &link).await;
    let (url, token) = assertion(&reply);
    assert_eq!(url, "https://ada.example/session");
    assert_eq!(reply.text, "");
    expect_private(&reply);

    let published = world.anonymous().get("/.well-known/jwks.json").await.expect(200);
    for jwk in list(published.body["keys"].clone()) {
        assert_eq!(members(&jwk), ["alg", "crv", "kid", "kty", "use", "x"], "public members alone");
    }
    let keys: JwkSet = serde_json::from_value(published.body).unwrap();
    let header = decode_header(&token).unwrap();
    assert_eq!((header.alg, header.typ.as_deref()), (Algorithm::EdDSA, Some("JWT")));
    let jwk = keys.find(&header.kid.unwrap()).unwrap();
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.set_audience(&["https://ada.example"]);
    validation.set_issuer(&[world.base_url()]);
    let again = assertion(&world.anonymous().call("POST", &self::link(&key, &client).await).await).1;
    assert_ne!(claims(&again)["jti"], claims(&token)["jti"], "an id of its own");
    let decoded = decode::<Value>(&token, &DecodingKey::from_jwk(jwk).unwrap(), &validation).unwrap().claims;
    assert_eq!(members(&decoded), ["aud", "coach_id", "exp", "iat", "iss", "jti", "sub"]);
    assert_eq!((&decoded["sub"], &decoded["coach_id"]), (&json!(client), &json!("ada")));
    assert_eq!(decoded["exp"].as_i64().unwrap() - decoded["iat"].as_i64().unwrap(), 60);
    assert!((world.now().await.timestamp() - decoded["iat"].as_i64().unwrap()).abs() <= 30);
}

#[tokio::test]
async fn opening_a_link_changes_nothing_however_often() {
    let world = World::start().await;
    let key = world.coach("ada").with("name", "Ada <b>& Sons</b>").await.partner_key().await;
    world.apply([Fact::client("ada", "c1").with("full_name", "Gwen Testperson")]).await;
    let link = link(&key, "c1").await;
    let before = world.table("login-links").await;
    let browser = world.anonymous();
    for _ in 0..3 {
        let page = browser.get(&link).await.expect(200);
        let head = browser.call("HEAD", &link).await.expect(200);
        assert_eq!(head.text, "");
        expect_private(&page);
        expect_private(&head);
        assert!(page.text.contains("Ada &lt;b&gt;&amp; Sons&lt;/b&gt;"), "{}", page.text);
        assert!(page.text.contains("<form method=\"post\">") && page.text.matches("<button").count() == 1);
        for personal in ["Gwen", "Testperson", "c1@clients.example"] {
            assert!(!page.text.contains(personal), "{}", page.text);
        }
    }
    assert_eq!(world.table("login-links").await, before);
    assertion(&browser.call("POST", &link).await);
    expect_dead(&world, &link).await;
}

#[tokio::test]
async fn of_simultaneous_posts_exactly_one_signs_in() {
    let (world, key, client) = start_with_client().await;
    let browser = world.anonymous();
    for _ in 0..5 {
        let link = link(&key, &client).await;
        let posts = join_all((0..20).map(|_| browser.call("POST", &link).into_future())).await;
        let mut statuses: Vec<u16> = posts.iter().map(|post| post.status).collect();
        statuses.sort_unstable();
        assert_eq!((statuses[0], &statuses[1..]), (303, &[410; 19][..]));
        expect_dead(&world, &link).await;
    }
}

#[tokio::test]
async fn an_unknown_link_looks_like_a_used_one() {
    let world = World::start().await;
    world.coach("ada").await;
    let unknown = format!("/login/{}", URL_SAFE_NO_PAD.encode([7; 32]));
    for link in [&unknown, "/login/x", "/login/%2e%2e", "/login/%ff", "/login/..%2f..", &format!("{unknown}=")] {
        expect_dead(&world, link).await;
    }
    for path in ["/login", "/login/", "/login/a/b"] {
        world.anonymous().get(path).await.refused(404, "unknown_path");
    }
}

#[tokio::test]
async fn a_link_dies_after_15_minutes_whether_or_not_its_item_is_gone() {
    let (world, key, client) = start_with_client().await;
    let (used, unused) = (link(&key, &client).await, link(&key, &client).await);
    world.advance_s(LIFE_S - 30).await;
    assertion(&world.anonymous().call("POST", &used).await);
    world.anonymous().get(&unused).await.expect(200);
    let items = world.table("login-links").await;
    assert_eq!(items.len(), 2);
    world.advance_s(30).await;
    for item in &items {
        world.put_item("login-links", item).await;
    }
    expect_dead(&world, &unused).await;
    expect_dead(&world, &used).await;
    world.advance_s(3600).await;
    assert_eq!(world.table("login-links").await, Vec::<Value>::new(), "expired links are deleted");
}

#[tokio::test]
async fn deactivation_kills_links_and_reactivation_revives_none() {
    let (world, key) = start_with_key().await;
    world.apply([Fact::client("ada", "c1")]).await;
    let by_api = link(&key, "c1").await;
    for is_active in [false, true] {
        key.patch("/v1/clients/c1", json!({ "is_active": is_active })).await.expect(200);
        expect_dead(&world, &by_api).await;
    }
    let by_application = link(&key, "c1").await;
    for is_active in [false, true] {
        world.apply([Fact::client("ada", "c1").with("is_active", is_active)]).await;
        expect_dead(&world, &by_application).await;
        expect_dead(&world, &by_api).await;
    }
    assertion(&world.anonymous().call("POST", &link(&key, "c1").await).await);
}

#[tokio::test]
async fn a_hand_over_kills_links_even_when_the_client_comes_back() {
    let world = World::start().await;
    let ada = world.coach("ada").await.partner_key().await;
    let bob = world.coach("bob").await.partner_key().await;
    world.apply([Fact::client("ada", "c1")]).await;
    let of_ada = link(&ada, "c1").await;
    world.apply([Fact::client("bob", "c1")]).await;
    expect_dead(&world, &of_ada).await;
    mint(&ada, "c1").await.refused(404, "not_found");
    let of_bob = link(&bob, "c1").await;
    let reply = world.anonymous().call("POST", &of_bob).await;
    let (url, token) = assertion(&reply);
    assert_eq!((url.as_str(), &claims(&token)["coach_id"]), ("https://bob.example/session", &json!("bob")));
    let of_bob = link(&bob, "c1").await;
    world.apply([Fact::client("ada", "c1")]).await;
    expect_dead(&world, &of_ada).await;
    expect_dead(&world, &of_bob).await;
}

#[tokio::test]
async fn a_changed_address_kills_links_and_other_changes_do_not() {
    let (world, key) = start_with_key().await;
    world.apply([Fact::client("ada", "c1")]).await;
    let link_of = async || link(&key, "c1").await;
    let kept = link_of().await;
    let changed = Fact::client("ada", "c1").with("full_name", "Another Name").with("phone", "+1 212 555 0100");
    world.apply([changed.clone()]).await;
    assertion(&world.anonymous().call("POST", &kept).await);
    let killed = link_of().await;
    world.apply([changed.with("email", "other@clients.example")]).await;
    expect_dead(&world, &killed).await;
    let killed = link_of().await;
    world.apply([erased("c1")]).await;
    expect_dead(&world, &killed).await;
    mint(&key, "c1").await.refused(404, "not_found");
}

#[tokio::test]
async fn a_deactivation_between_a_posts_reads_and_its_write_wins() {
    let (world, key, client) = start_with_client().await;
    let link = link(&key, &client).await;
    // The link, its client and its workspace are read; the transaction waits.
    world.faults(json!({ "function": "login-links", "spared_calls": 3, "stalled_calls": 1 })).await;
    let post = tokio::spawn(world.anonymous().call("POST", &link).into_future());
    world.until_stalled().await;
    for is_active in [false, true] {
        key.patch(&format!("/v1/clients/{client}"), json!({ "is_active": is_active })).await.expect(200);
    }
    world.faults(json!({ "stalled_calls": 0 })).await;
    post.await.unwrap().expect(410);
    expect_dead(&world, &link).await;
}

#[tokio::test]
async fn a_client_is_redirected_to_the_coachs_current_host() {
    let (world, key, client) = start_with_client().await;
    let link = link(&key, &client).await;
    world.coach("ada").with("canonical_host", "https://new.example:8443").await;
    let page = world.anonymous().get(&link).await.expect(200);
    assert!(page.header("content-security-policy").unwrap().contains("'self' https://new.example:8443;"));
    let (url, token) = assertion(&world.anonymous().call("POST", &link).await);
    assert_eq!(
        (url.as_str(), &claims(&token)["aud"]),
        ("https://new.example:8443/session", &json!("https://new.example:8443"))
    );
}

#[tokio::test]
async fn a_fault_shows_a_page_with_an_event_id_and_does_not_use_the_link() {
    let (world, key, client) = start_with_client().await;
    let link = link(&key, &client).await;
    let token = link.rsplit_once('/').unwrap().1;
    for method in ["GET", "POST"] {
        world.faults(json!({ "function": "login-links", "store_failures": SDK_ATTEMPTS })).await;
        let reply = world.anonymous().call(method, &link).await.expect(500);
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
        expect_private(&reply);
        let event_id = reply.text.split("<code>").nth(1).unwrap().split("</code>").next().unwrap();
        assert!(event_id.starts_with("err_") && world.log().contains(event_id), "{event_id}");
        assert!(!reply.text.contains(token) && !world.log().contains(token));
    }
    // A lost answer does not cost the link: the transaction's repeat finds it committed.
    world.faults(json!({ "spared_calls": 3, "store_failures": 0, "store_lost_answers": 1 })).await;
    assertion(&world.anonymous().call("POST", &link).await);
    world.faults(json!({ "spared_calls": 0, "store_lost_answers": 0 })).await;
    expect_dead(&world, &link).await;
}

#[tokio::test]
async fn a_huge_body_is_refused_and_does_not_use_the_link() {
    let (world, key, client) = start_with_client().await;
    let link = link(&key, &client).await;
    let refused = world.anonymous().call("POST", &link).body(vec![b'a'; 256 * 1024 + 1]).await.expect(413);
    assert_eq!(refused.header("content-type"), Some("text/html; charset=utf-8"));
    expect_private(&refused);
    let form = world.anonymous().call("POST", &link).header("content-type", "application/x-www-form-urlencoded");
    assertion(&form.body("a=b").await);
}
