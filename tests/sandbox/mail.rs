//! Mails: the live service sends them, and a sandbox stores them for its integrators.

use chrono::TimeDelta;
use domain::mode::Mode;
use serde_json::{Value, json};

use crate::sandbox::{MAIL, start, visitor};
use crate::world::{
    Answer, Application, Caller, Invitation, Receiver, Reply, bytes_of, list, made_up_cursor, members, position_of,
    time,
};

const NAME: &str = "Gwendolyn Testperson";
const EMAIL: &str = "gwendolyn@clients.example";
const DAY_S: u64 = 86_400;

/// Creates a client who is welcomed by mail, if that can be.
async fn create(key: &Caller, email: &str) -> Reply {
    key.post("/v1/clients", json!({ "email": email, "full_name": NAME })).await.expect(201)
}

/// The mails of a page.
async fn mails(key: &Caller, query: &str) -> Vec<Value> {
    list(key.get(&format!("{MAIL}{query}")).await.expect(200).body["data"].clone())
}

/// The recipients of mails, in their order.
fn recipients(mails: &[Value]) -> Vec<&str> {
    mails.iter().map(|mail| mail["to"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_welcome_mail_goes_out_in_a_live_stack_and_is_stored_in_a_sandbox() {
    for mode in Mode::ALL {
        let world = start(mode).await;
        let ada = world.coach("ada").await;
        let (key, crm) = (ada.partner_key().await, ada.crm_key().await);
        let before = world.now().await;
        let made = create(&key, EMAIL).await;
        assert_eq!((&made.body["welcome_email_sent"], &made.body["intake_url"]), (&json!(true), &Value::Null));
        assert_eq!(Invitation::try_from_reply(&made), None);
        world.settle().await;
        let (sent, stored) = match mode {
            Mode::Live => (world.mail().await, Vec::new()),
            Mode::Test => (Vec::new(), mails(&key, "").await),
        };
        assert_eq!(world.mail().await.len(), sent.len(), "{mode:?}");
        let [mail] = &[sent, stored].concat()[..] else { panic!("one mail") };
        assert_eq!(mail["to"], EMAIL);
        let invitation = Invitation::from_mail(mail);
        assert!(Application::of(&world).await.welcomes(EMAIL, &invitation));
        for part in ["text", "html"] {
            let text = mail[part].as_str().unwrap();
            assert!(text.contains(NAME) && text.contains(&invitation.password), "{part}");
        }
        assert_eq!(mail["subject"], "Your account with Coach ada");
        if mode == Mode::Test {
            assert_eq!(members(mail), ["html", "sent_at", "subject", "text", "to"]);
            assert!(before <= time(&mail["sent_at"]) && time(&mail["sent_at"]) <= world.now().await);
            assert_eq!(mails(&crm, "").await, std::slice::from_ref(mail), "a key of either scope reads them");
        }
    }
}

#[tokio::test]
async fn an_address_that_begins_with_bounce_takes_no_mail_in_a_sandbox() {
    for mode in Mode::ALL {
        let world = start(mode).await;
        let key = world.coach("ada").await.partner_key().await;
        for (email, bounces) in [
            ("bounce@clients.example", true),
            ("Bounce+1@clients.example", true),
            ("bouncer@clients.example", true),
            ("a.bounce@clients.example", false),
            ("boun@bounce.example", false),
        ] {
            let made = create(&key, email).await;
            let is_sent = mode == Mode::Live || !bounces;
            assert_eq!(made.body["welcome_email_sent"], is_sent, "{email}");
            let credentials = Invitation::try_from_reply(&made);
            assert_eq!(credentials.is_some(), !is_sent, "{email}: {}", made.text);
            if let Some(invitation) = credentials {
                assert!(made.str("intake_url").starts_with("https://ada.example/intake/"));
                world.settle().await;
                assert!(Application::of(&world).await.welcomes(email, &invitation));
            }
        }
        world.settle().await;
        let sent = world.mail().await;
        match mode {
            Mode::Live => assert_eq!(sent.len(), 5),
            Mode::Test => {
                assert_eq!(sent, [] as [Value; 0]);
                let stored = mails(&key, "").await;
                assert_eq!(recipients(&stored), ["boun@bounce.example", "a.bounce@clients.example"]);
            }
        }
    }
}

#[tokio::test]
async fn mails_are_listed_page_by_page_newest_first_for_their_workspace_alone() {
    let world = start(Mode::Test).await;
    let (ada, bob) = (visitor(&world, "ada"), visitor(&world, "bob"));
    let (key, other) = (ada.partner_key().await, bob.partner_key().await);
    let mut wanted = Vec::new();
    for number in 0..5 {
        wanted.insert(0, format!("client-{number}@clients.example"));
        create(&key, &wanted[0]).await;
        world.advance_s(1).await;
    }
    create(&other, "of-bob@clients.example").await;
    for limit in [1, 2, 3, 5, 50] {
        let (mut read, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let page = key.get(&format!("{MAIL}?limit={limit}&cursor={cursor}")).await.expect(200).body;
            assert_eq!(members(&page), ["data", "next_cursor"]);
            read.extend(list(page["data"].clone()));
            pages += 1;
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(recipients(&read), wanted, "{limit}");
        assert_eq!(pages, 5_usize.div_ceil(limit), "{limit}");
    }
    assert_eq!(recipients(&mails(&other, "").await), ["of-bob@clients.example"]);
    // A cursor belongs to its workspace and its list.
    let own = key.get(&format!("{MAIL}?limit=1")).await.expect(200).str("next_cursor").to_owned();
    other.get(&format!("{MAIL}?cursor={own}")).await.refused_for("cursor");
    key.get(&format!("/v1/requests?cursor={own}")).await.refused_for("cursor");
    let position = position_of("ada", "test_mail", &own);
    for bad in ["x".to_owned(), made_up_cursor("ada", "test_mail", ""), made_up_cursor("bob", "test_mail", &position)] {
        key.get(&format!("{MAIL}?cursor={bad}")).await.refused_for("cursor");
    }
    key.get(&format!("{MAIL}?to=x")).await.refused_for("to");
    assert_eq!(mails(&key, "?limit=nonsense").await.len(), 5);
}

#[tokio::test]
async fn a_made_up_position_is_refused_or_empty_and_never_a_fault() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    create(&key, EMAIL).await;
    for position in ["#", "0#0", "9999#9", "\u{0}#", &format!("{}#", "1".repeat(2_000))] {
        let cursor = made_up_cursor("ada", "test_mail", position);
        let reply = key.get(&format!("{MAIL}?cursor={cursor}")).await;
        assert!([200, 400].contains(&reply.status), "{position:.20}: {}", reply.text);
    }
}

#[tokio::test]
async fn a_stored_mail_is_sealed() {
    let world = start(Mode::Test).await;
    let key = world.coach("ada").await.partner_key().await;
    create(&key, EMAIL).await;
    world.settle().await;
    let invitation = Invitation::from_mail(&mails(&key, "").await[0]);
    world.at_rest().await.assert_absent([invitation.password.as_str(), invitation.token.as_str()]);
    let mut stored = world.items("workspaces", "COACH#ada").await;
    stored.retain(|item| item["sk"]["S"].as_str().unwrap().starts_with("MAIL#"));
    let [item] = &stored[..] else { panic!("one mail: {stored:?}") };
    assert_eq!(members(item), ["expires_at", "pk", "sealed", "sk"]);
    let bytes = String::from_utf8_lossy(&bytes_of(item)).to_lowercase();
    for text in [EMAIL, "gwendolyn", "testperson", "your account"] {
        assert!(!bytes.contains(text), "{text}");
    }
}

#[tokio::test]
async fn a_mail_is_kept_for_seven_days() {
    let world = start(Mode::Test).await;
    let key = world.coach("ada").await.partner_key().await;
    create(&key, EMAIL).await;
    let sent_at = time(&mails(&key, "").await[0]["sent_at"]);
    world.down_until(sent_at + TimeDelta::days(7) - TimeDelta::minutes(1)).await;
    world.advance_s(1).await;
    assert_eq!(recipients(&mails(&key, "").await), [EMAIL]);
    world.advance_s(120).await;
    assert_eq!(mails(&key, "").await, [] as [Value; 0]);
    let left = world.items("workspaces", "COACH#ada").await;
    assert!(left.iter().all(|item| !item["sk"]["S"].as_str().unwrap().starts_with("MAIL#")), "{left:?}");
}

#[tokio::test]
async fn notices_to_the_coach_are_stored_too() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let key = ada.partner_key().await;
    ada.endpoint(&receiver.url(), "identifiers").await;
    receiver.otherwise(Answer::status(500));
    for number in 0..3 {
        create(&key, &format!("client-{number}@clients.example")).await;
        world.advance_s(2 * DAY_S).await;
    }
    let stored = mails(&key, "").await;
    let notices: Vec<&str> = stored
        .iter()
        .filter(|mail| mail["to"] == "ada@coaches.example")
        .map(|mail| mail["subject"].as_str().unwrap())
        .collect();
    assert_eq!(notices, ["Webhooks to 127.0.0.1 are switched off", "Webhooks to 127.0.0.1 fail"]);
    assert_eq!(world.mail().await, [] as [Value; 0]);
}

/// A coach without an address, as the first request of a token without one makes it.
#[tokio::test]
async fn a_notice_to_a_coach_without_an_address_is_dropped() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let ada = visitor(&world, "ada");
    let key = ada.partner_key().await;
    ada.endpoint(&receiver.url(), "identifiers").await;
    receiver.otherwise(Answer::status(410));
    create(&key, EMAIL).await;
    world.settle().await;
    assert_eq!(recipients(&mails(&key, "").await), [EMAIL]);
    assert_eq!(world.table("outbox").await, [] as [Value; 0], "the notice does not stay in the outbox");
}
