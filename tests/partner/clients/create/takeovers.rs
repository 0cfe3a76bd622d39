//! `POST /v1/clients` where a request takes over the claim of one that died or stalls. The lease decides who continues,
//! everybody gets the recorded answer, and a late request changes nothing.

use std::future::IntoFuture;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::partner::clients::create::crashes::{
    CreationScene, FEWEST_CALLS, HANDED, HANDED_DERIVED, MAILED, MAILED_DERIVED, MODES, MOST_CALLS, for_all_modes,
};
use crate::world::{Fact, LAPSED_S, Reply};

#[tokio::test]
async fn a_takeover_absorbs_a_lost_answer_at_each_of_its_calls() {
    for_all_modes(&[MAILED, HANDED_DERIVED], async |mut scene| {
        for spared_calls in 0..MOST_CALLS {
            let email = format!("takeover-{spared_calls}@example.com");
            // Either the claim has a stage to continue from, or there is only the claim.
            match scene.mode.send_welcome {
                true => scene.faults(0, "crash_after_commit", 1).await,
                false => scene.faults(FEWEST_CALLS - 1, "crash_before_call", 1).await,
            }
            scene.post(&email).await.expect(500);
            scene.no_faults().await;
            scene.world.advance_s(LAPSED_S).await;
            scene.faults(spared_calls, "store_lost_answers", 1).await;
            let reply = scene.post(&email).await;
            let is_over = scene.world.remaining_faults().await["spared_calls"] != 0;
            scene.no_faults().await;
            assert_eq!(reply.status, 201, "{spared_calls} calls in {:?}: {}", scene.mode, reply.text);
            scene.assert_created(&email, reply).await;
            if is_over {
                break;
            }
        }
        scene.assert_whole_without_duplicates().await;
    })
    .await;
}

/// Sends a request that stalls after `spared_calls` calls. Returns its answer if it ends without a stall.
async fn start_stalled(scene: &CreationScene, spared_calls: usize, email: &str) -> Result<JoinHandle<Reply>, Reply> {
    scene.faults(spared_calls, "stalled_calls", 1).await;
    let mut stalled = tokio::spawn(scene.post(email).into_future());
    tokio::select! {
        ended = &mut stalled => Err(ended.unwrap()),
        () = scene.world.until_stalled() => Ok(stalled),
    }
}

/// Mail outcomes of the stalled request and of the one that takes over.
#[derive(Debug, Clone, Copy)]
enum Mails {
    Sent,
    StalledFails,
    TakeoverFails,
}

/// A request stalls before each of its calls in turn, for longer than its lease; another takes over and is answered;
/// then the first resumes. Its answer is the recorded one, or an error.
async fn overtake_at_each_call(mut scene: CreationScene, mails: Mails) {
    let mut points = 0;
    for spared_calls in 0..MOST_CALLS {
        let email = format!("stalled-{spared_calls}@example.com");
        let stalled = match start_stalled(&scene, spared_calls, &email).await {
            Ok(stalled) => stalled,
            Err(ended) => {
                scene.no_faults().await;
                scene.assert_created(&email, ended.expect(201)).await;
                break;
            }
        };
        scene.world.advance_s(LAPSED_S).await;
        let mail_failures = |count: u32| scene.world.faults(json!({ "spared_calls": 0, "mail_failures": count }));
        mail_failures(u32::from(matches!(mails, Mails::TakeoverFails))).await;
        let takeover = scene.post(&email).await.expect(201);
        mail_failures(u32::from(matches!(mails, Mails::StalledFails))).await;
        scene.world.faults(json!({ "stalled_calls": 0 })).await;
        let late = stalled.await.unwrap();
        scene.no_faults().await;
        if late.status == 409 {
            late.refused(409, "idempotency_in_progress");
        } else {
            assert_eq!(late.expect(201).text, takeover.text, "{spared_calls} calls in {:?} {mails:?}", scene.mode);
        }
        scene.assert_created(&email, takeover).await;
        points += 1;
    }
    assert!((FEWEST_CALLS..MOST_CALLS - 1).contains(&points), "{points} points in {:?}", scene.mode);
    scene.assert_whole_without_duplicates().await;
}

#[tokio::test]
async fn an_overtaken_request_changes_nothing_and_gives_no_other_answer() {
    for_all_modes(&MODES, async |scene| overtake_at_each_call(scene, Mails::Sent).await).await;
}

#[tokio::test]
async fn an_overtaken_request_that_cannot_mail_gives_the_recorded_answer() {
    for_all_modes(&[MAILED, MAILED_DERIVED], async |scene| overtake_at_each_call(scene, Mails::StalledFails).await)
        .await;
}

#[tokio::test]
async fn an_overtaken_request_that_mails_alone_gives_the_recorded_answer() {
    for_all_modes(&[MAILED, MAILED_DERIVED], async |scene| overtake_at_each_call(scene, Mails::TakeoverFails).await)
        .await;
}

#[tokio::test]
async fn an_overtaken_refusal_is_answered_as_in_progress() {
    let scene = CreationScene::of(HANDED).await;
    let email = "taken@example.com";
    let taken = Fact::client("ada", "c1").with("email", email).with("backfill", true);
    scene.world.apply([taken.clone()]).await;
    scene.post(email).await.refused(409, "email_taken");
    let calls = scene.world.calls("clients").await[0]["calls"].as_array().unwrap().len();
    let call = || scene.key.post("/v1/clients", json!({ "email": email, "send_welcome": false })).idempotent("again");
    // The last call keeps the request's record, the one before it the refusal.
    scene.faults(calls - 2, "stalled_calls", 1).await;
    let refused = tokio::spawn(call().into_future());
    scene.world.until_stalled().await;
    scene.world.apply([taken.with("email", Value::Null)]).await;
    scene.world.advance_s(LAPSED_S).await;
    let created = call().await.expect(201);
    scene.no_faults().await;
    refused.await.unwrap().refused(409, "idempotency_in_progress");
    assert_eq!(call().await.expect(201).text, created.text);
}

/// A creation with a mail that dies after its commit. Returns the client's id.
async fn abandon(scene: &CreationScene, email: &str) -> String {
    scene.faults(0, "crash_after_commit", 1).await;
    scene.post(email).await.expect(500);
    scene.no_faults().await;
    let found = scene.key.get(&format!("/v1/clients?email={email}")).await.expect(200);
    found.body["clients"][0]["client_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_takeover_ignores_the_retrys_body() {
    let scene = CreationScene::of(MAILED).await;
    for (number, other) in ["{}", "nonsense", r#"{"email": "other@example.com"}"#].into_iter().enumerate() {
        let email = format!("c{number}@example.com");
        abandon(&scene, &email).await;
        scene.world.advance_s(LAPSED_S).await;
        let reply = scene.post(&email).body(other).await.expect(201);
        assert_eq!((reply.str("email"), &reply.body["welcome_email_sent"]), (email.as_str(), &json!(true)), "{other}");
        assert_eq!(reply.header("idempotency-payload-mismatch"), Some("true"), "{other}");
        let replay = scene.post(&email).await.expect(201);
        assert_eq!(replay.text, reply.text);
    }
    assert_eq!(scene.world.items("clients", "CLIENT#").await.len(), 3);
}

#[tokio::test]
async fn a_late_claim_that_was_given_up_changes_nothing() {
    let scene = CreationScene::of(HANDED).await;
    // After the key's count come the claim and the parallel reads. The SDK gives up a stalled call after some seconds
    // and retries.
    for spared in 1..4 {
        let email = format!("c{spared}@example.com");
        scene.faults(spared, "stalled_calls", 1).await;
        let created = scene.post(&email).await.expect(201);
        scene.no_faults().await;
        scene.world.settle().await;
        let replay = scene.post(&email).await.expect(201);
        assert!(replay.is_replay() && replay.text == created.text, "call {spared}: {}", replay.text);
    }
    assert_eq!(scene.world.items("clients", "CLIENT#").await.len(), 3);
}

#[tokio::test]
async fn a_takeover_goes_by_the_clients_present_coach_state_and_address() {
    let scene = CreationScene::of(MAILED).await;
    scene.world.coach("bob").await;
    // The change of the client, whether the mail is sent, and whether the answer has the credentials.
    for (case, member, value, is_mailed, is_handed_out) in [
        ("handed_over", "coach_id", json!("bob"), false, false),
        ("switched_off", "is_active", json!(false), false, true),
        ("corrected", "email", json!("right@example.com"), true, false),
        ("removed", "email", Value::Null, false, true),
    ] {
        let email = format!("{case}@example.com");
        let id = abandon(&scene, &email).await;
        let occurred_at = scene.world.timestamp_in(1).await;
        let saved = Fact::client("ada", &id).with("email", email.as_str()).with("occurred_at", occurred_at);
        scene.world.apply([saved.with(member, value)]).await;
        scene.world.advance_s(LAPSED_S).await;
        let reply = scene.post(&email).await.expect(201);
        assert_eq!(
            (&reply.body["welcome_email_sent"], reply.str("client_id")),
            (&json!(is_mailed), id.as_str()),
            "{case}"
        );
        for secret in ["temp_password", "intake_url"] {
            assert_eq!(reply.body[secret].is_string(), is_handed_out, "{case}: {}", reply.text);
        }
    }
    let mails = scene.world.mail().await;
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0]["to"], "right@example.com");
    assert!(!mails[0].to_string().contains("corrected@example.com"), "{}", mails[0]);
}

#[tokio::test]
async fn an_abandoned_client_is_emitted_and_a_takeover_emits_it_again_in_its_current_state() {
    let scene = CreationScene::of(MAILED).await;
    let id = abandon(&scene, "old@example.com").await;
    scene.world.settle().await;
    assert!(scene.world.changes("client.created").await.is_empty(), "held back while the mail may still go");
    scene.world.advance_s(30 * 60).await;
    let issued = scene.world.changes("client.created").await;
    assert_eq!((issued.len(), &issued[0]["intake"]["state"]), (1, &json!("issued")));
    let saved = Fact::client("ada", &id).with("email", "new@example.com").with("full_name", "Anew");
    scene.world.apply([saved]).await;
    let answer = scene.post("old@example.com").await.expect(201);
    assert_eq!((answer.str("email"), answer.str("full_name")), ("new@example.com", "Anew"));
    let mails = scene.world.mail().await;
    assert!(mails[0]["text"].as_str().unwrap().contains("Anew"), "{}", mails[0]);
    scene.world.settle().await;
    let emitted = scene.world.changes("client.created").await;
    let last = emitted.iter().max_by_key(|fact| fact["occurred_at"].to_string()).unwrap();
    assert_eq!((emitted.len(), &last["intake"]["state"]), (2, &json!("sent")));
    assert_ne!(last["id"], issued[0]["id"]);
    assert_eq!((&last["client"]["email"], &last["client"]["full_name"]), (&json!("new@example.com"), &json!("Anew")));
}
