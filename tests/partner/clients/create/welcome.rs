//! The welcome mail: its content, its failure and its daily limit.

use serde_json::{Value, json};

use crate::partner::clients::create::{assert_application_can_sign_in, create, intake_states};
use crate::world::World;

#[tokio::test]
async fn without_a_welcome_mail_or_if_it_fails_the_answer_has_password_and_link() {
    for send_welcome in [false, true] {
        let world = World::start().await;
        let key = world.coach("ada").await.partner_key().await;
        world.faults(json!({ "mail_failures": 100 })).await;
        let body = json!({ "email": "grace@example.com", "full_name": "Grace Hopper", "send_welcome": send_welcome });
        let made = create(&world, &key, body).await.expect(201);
        assert_eq!(
            made.members(),
            ["client_id", "email", "full_name", "intake_url", "temp_password", "welcome_email_sent"]
        );
        assert_eq!(made.body["welcome_email_sent"], false);
        let token = made.str("intake_url").strip_prefix("https://ada.example/intake/").unwrap();
        assert_eq!(token.len(), 43, "256 bits in base64url");
        assert!(made.str("temp_password").len() >= 16);
        world.settle().await;
        assert!(world.mail().await.is_empty());
        assert_eq!(intake_states(&world).await, ["issued"]);
        assert_application_can_sign_in(&world, made.str("temp_password"), token, "issued").await;
    }
}

#[tokio::test]
async fn a_welcome_mail_has_the_credentials_that_the_answer_omits() {
    let world = World::start().await;
    let key = world.coach("ada").with("name", "Ada & <Sons>").await.partner_key().await;
    let body = json!({ "email": "grace@example.com", "full_name": "Grace <b>Hopper</b>" });
    let made = create(&world, &key, body).await.expect(201);
    assert_eq!(made.members(), ["client_id", "email", "full_name", "intake_url", "welcome_email_sent"]);
    assert_eq!((&made.body["welcome_email_sent"], &made.body["intake_url"]), (&json!(true), &Value::Null));
    world.settle().await;
    let mails = world.mail().await;
    assert_eq!(mails.len(), 1);
    let mail = |part: &str| mails[0][part].as_str().unwrap().to_owned();
    assert_eq!(mail("to"), "grace@example.com");
    assert_eq!(mail("subject"), "Your account with Ada & <Sons>");
    let (text, html) = (mail("text"), mail("html"));
    for part in ["Grace <b>Hopper</b>", "Ada & <Sons>", "grace@example.com", "https://ada.example\n"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(html.contains("Grace &lt;b&gt;Hopper&lt;/b&gt;") && html.contains("Ada &amp; &lt;Sons&gt;"), "{html}");
    assert!(!html.contains("<b>Hopper") && !html.contains("<Sons>"), "{html}");
    let password = text.split("Password:").nth(1).unwrap().split_whitespace().next().unwrap();
    let token = text.split("https://ada.example/intake/").nth(1).unwrap().split_whitespace().next().unwrap();
    assert!(
        html.contains(password) && html.contains(&format!("href=\"https://ada.example/intake/{token}\"")),
        "{html}"
    );
    assert_eq!(intake_states(&world).await, ["sent"]);
    assert_application_can_sign_in(&world, password, token, "sent").await;
}

#[tokio::test]
async fn a_domain_is_one_address_in_unicode_and_in_ascii_and_mail_goes_to_the_ascii_form() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let made = create(&world, &key, json!({ "email": "ada@bücher.example" })).await.expect(201);
    assert_eq!((made.str("email"), &made.body["welcome_email_sent"]), ("ada@bücher.example", &json!(true)));
    let mails = world.mail().await;
    assert_eq!(mails[0]["to"], "ada@xn--bcher-kva.example");
    for same in ["ada@xn--bcher-kva.example", "Ada@BÜCHER.example", "ada@bu\u{308}cher.example"] {
        create(&world, &key, json!({ "email": same })).await.refused(409, "email_taken");
        let query: String = same.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let found = key.get(&format!("/v1/clients?email={query}")).await.expect(200).body;
        assert_eq!(
            (&found["count"], &found["clients"][0]["email"]),
            (&json!(1), &json!("ada@bücher.example")),
            "{same}"
        );
    }
}

#[tokio::test]
async fn a_non_ascii_local_part_is_created_and_its_credentials_are_returned() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for email in ["jörg@example.com", "हिन्दी@example.com"] {
        let made = create(&world, &key, json!({ "email": email })).await.expect(201);
        assert_eq!(made.body["welcome_email_sent"], false);
        assert!(made.str("temp_password").len() >= 16 && made.str("intake_url").contains("/intake/"), "{email}");
    }
    world.settle().await;
    assert!(world.mail().await.is_empty());
    assert_eq!(intake_states(&world).await, ["issued", "issued"]);
}

#[tokio::test]
async fn a_name_in_a_mail_is_short_and_holds_no_link() {
    let world = World::start().await;
    let key = world.coach("ada").with("name", "Ada https://coach.evil.example").await.partner_key().await;
    for (number, name) in
        ["Win at evil.example/pay now", "https://evil.example", "bob@evil.example", "Call +1 415 555 2671"]
            .into_iter()
            .chain(["evil。example", "\u{202e}elpmaxe.live"])
            .enumerate()
    {
        create(&world, &key, json!({ "email": format!("c{number}@own.test"), "full_name": name })).await.expect(201);
    }
    create(&world, &key, json!({ "email": "long@own.test", "full_name": "é".repeat(200) })).await.expect(201);
    let mails = world.mail().await;
    assert_eq!(mails.len(), 7);
    for mail in &mails {
        for part in ["subject", "text", "html"] {
            let text = mail[part].as_str().unwrap();
            for link in ["evil.", ".evil", "evil。", "@evil", "555 2671", "\u{202e}"] {
                assert!(!text.contains(link), "{link} in {text}");
            }
        }
    }
    let text = mails[6]["text"].as_str().unwrap();
    assert!(text.contains(&format!("Hello {}…,", "é".repeat(59))), "{text}");
}

/// Welcome mails a day for a coach's clients, by the template's default.
const MAILS_PER_DAY: u64 = 2_000;

#[tokio::test]
async fn beyond_the_daily_mail_limit_the_answer_has_the_credentials_until_the_next_day() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let other = world.coach("bob").await.partner_key().await;
    create(&world, &key, json!({ "email": "first@example.com" })).await.expect(201);
    let items = world.items("workspaces", "COACH#ada").await;
    let mut count = items.into_iter().find(|item| item["sk"]["S"] == "WORKSPACE").unwrap();
    count["mails_sent"]["N"] = (MAILS_PER_DAY - 1).to_string().into();
    world.put_item("workspaces", &count).await;
    let emails: Vec<String> = (0..6).map(|number| format!("racer{number}@example.com")).collect();
    let made =
        futures::future::join_all(emails.iter().map(|email| create(&world, &key, json!({ "email": email })))).await;
    let (sent, left): (Vec<_>, Vec<_>) =
        made.into_iter().map(|made| made.expect(201)).partition(|made| made.body["welcome_email_sent"] == true);
    assert_eq!((sent.len(), left.len()), (1, 5), "the limit is exact");
    assert!(
        left.iter().all(|made| made.str("temp_password").len() >= 16 && made.str("intake_url").contains("/intake/"))
    );
    create(&world, &other, json!({ "email": "other@example.com" })).await.expect(201);
    assert_eq!(world.mail().await.len(), 3, "the mail limit is per coach");
    world.advance_s(24 * 3_600).await;
    let made = create(&world, &key, json!({ "email": "tomorrow@example.com" })).await.expect(201);
    assert_eq!(made.body["welcome_email_sent"], true);
}
