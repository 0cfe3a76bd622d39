//! The welcome mail: its content, its failure and its daily limit.

use serde_json::{Value, json};

use crate::partner::clients::create::create;
use crate::partner::start_with_key;
use crate::world::{Application, Invitation, World};

/// Asserts that the credentials sign the client in and open the intake, which has this state, also where it is stored.
async fn assert_signs_in(world: &World, email: &str, invitation: &Invitation, state: &str) {
    let application = Application::of(world).await;
    assert_eq!(application.signs_in(email, &invitation.password), Some(true));
    assert_eq!(application.intake(email, &invitation.token), Some(state));
    let intakes = world.items("clients", "INTAKE#").await;
    assert_eq!(intakes.iter().map(|intake| &intake["state"]["S"]).collect::<Vec<_>>(), [state]);
}

#[tokio::test]
async fn without_a_welcome_mail_or_if_it_fails_the_answer_has_password_and_link() {
    for (email, send_welcome) in [("grace@example.com", false), ("grace@example.com", true), ("jörg@example.com", true)]
    {
        let (world, key) = start_with_key().await;
        // No mail goes to an address whose local part is not ASCII.
        let failures = if email.is_ascii() { 100 } else { 0 };
        world.faults(json!({ "mail_failures": failures })).await;
        let made = create(&world, &key, json!({ "email": email, "send_welcome": send_welcome })).await.expect(201);
        assert_eq!(made.body["welcome_email_sent"], false);
        assert!(made.str("intake_url").starts_with("https://ada.example/intake/"));
        world.settle().await;
        assert!(world.mail().await.is_empty());
        assert_signs_in(&world, email, &Invitation::from_reply(&made), "issued").await;
    }
}

#[tokio::test]
async fn a_welcome_mail_has_the_credentials_that_the_answer_omits_and_no_link_in_a_name() {
    let world = World::start().await;
    let key = world.coach("ada").with("name", "Ada & <Sons> coach.evil").await.partner_key().await;
    let body = json!({ "email": "grace@example.com", "full_name": "Grace <b>Hopper</b> evil.example/pay" });
    let made = create(&world, &key, body).await.expect(201);
    assert_eq!(made.members(), ["client_id", "email", "full_name", "intake_url", "welcome_email_sent"]);
    assert_eq!((&made.body["welcome_email_sent"], &made.body["intake_url"]), (&json!(true), &Value::Null));
    world.settle().await;
    let mails = world.mail().await;
    assert_eq!(mails.len(), 1);
    let mail = |part: &str| mails[0][part].as_str().unwrap().to_owned();
    assert_eq!(mail("to"), "grace@example.com");
    let (text, html) = (mail("text"), mail("html"));
    for part in ["Grace <b>Hopper</b>", "Ada & <Sons>", "grace@example.com", "https://ada.example\n"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(html.contains("Grace &lt;b&gt;Hopper&lt;/b&gt;") && html.contains("Ada &amp; &lt;Sons&gt;"), "{html}");
    assert!(!html.contains("<b>Hopper") && !html.contains("<Sons>"), "{html}");
    for link in ["coach.evil", "evil.example"] {
        assert!(![mail("subject"), text.clone(), html.clone()].concat().contains(link), "{link} in {text}");
    }
    let invitation = Invitation::from_mail(&mails[0]);
    let Invitation { password, token } = &invitation;
    assert!(
        html.contains(password) && html.contains(&format!("href=\"https://ada.example/intake/{token}\"")),
        "{html}"
    );
    assert_signs_in(&world, "grace@example.com", &invitation, "sent").await;
}

#[tokio::test]
async fn a_domain_is_one_address_in_unicode_and_in_ascii_and_mail_goes_to_the_ascii_form() {
    let (world, key) = start_with_key().await;
    let made = create(&world, &key, json!({ "email": "ada@bücher.example" })).await.expect(201);
    assert_eq!((made.str("email"), &made.body["welcome_email_sent"]), ("ada@bücher.example", &json!(true)));
    assert_eq!(world.mail().await[0]["to"], "ada@xn--bcher-kva.example");
    for same in ["ada@xn--bcher-kva.example", "Ada@BÜCHER.example", "ada@bu\u{308}cher.example"] {
        create(&world, &key, json!({ "email": same })).await.refused(409, "email_taken");
    }
}

/// Welcome mails a day for a coach's clients, by the template's default.
const MAILS_PER_DAY: u64 = 2_000;

#[tokio::test]
async fn beyond_the_daily_mail_limit_the_answer_has_the_credentials_until_the_next_day() {
    let (world, key) = start_with_key().await;
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
