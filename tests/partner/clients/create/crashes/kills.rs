//! Creations on a machine that goes down.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::partner::clients::create::crashes::{CreationScene, HANDED, HANDED_DERIVED, MAILED, for_all_modes};
use crate::world::{Invitation, LAPSED_S, World, bytes_of, until};

/// A moment in a burst of creations at which the machine goes down.
#[derive(Debug, Clone, Copy)]
enum Moment {
    Claims(usize),
    Clients(usize),
    Mails(usize),
    Answers(usize),
}

impl Moment {
    /// Waits for the moment.
    async fn wait(self, world: &World, earlier: usize) {
        let has_come = async || {
            let (seen, wanted) = match self {
                Self::Claims(wanted) => (world.table("idempotency").await.len(), wanted),
                Self::Clients(wanted) => (world.items("clients", "CLIENT#").await.len(), wanted),
                Self::Mails(wanted) => (world.mail().await.len(), wanted),
                Self::Answers(wanted) => {
                    let claims = world.table("idempotency").await;
                    (claims.iter().filter(|claim| !claim["status"].is_null()).count(), wanted)
                }
            };
            seen >= earlier + wanted
        };
        until("the moment", has_come).await;
    }
}

#[tokio::test]
async fn a_burst_of_creations_can_be_completed_after_the_machine_goes_down() {
    const BURST: usize = 8;
    for_all_modes(&[MAILED, HANDED], async |mut scene| {
        let moments = match scene.mode.send_welcome {
            true => vec![Moment::Claims(1), Moment::Clients(3), Moment::Mails(1), Moment::Mails(4), Moment::Answers(2)],
            false => {
                vec![Moment::Claims(1), Moment::Claims(5), Moment::Clients(1), Moment::Clients(4), Moment::Answers(6)]
            }
        };
        for (round, moment) in moments.into_iter().enumerate() {
            let emails: Vec<String> = (0..BURST).map(|number| format!("r{round}c{number}@example.com")).collect();
            let mut calls = JoinSet::new();
            for email in &emails {
                let (call, email) = (scene.post(email), email.clone());
                // A call whose connection breaks panics, in its own task.
                calls.spawn(async move { (email, call.await) });
            }
            let earlier = match moment {
                Moment::Mails(_) => scene.world.mail().await.iter().filter(|mail| !is_of_round(mail, round)).count(),
                _ => scene.created.len(),
            };
            moment.wait(&scene.world, earlier).await;
            scene.world.kill_and_restart().await;
            let mut answered = Vec::new();
            while let Some(ended) = calls.join_next().await {
                answered.extend(ended.ok());
            }
            scene.world.advance_s(LAPSED_S).await;
            for email in &emails {
                let reply = scene.post(email).await.expect(201);
                if let Some((_, first)) = answered.iter().find(|(other, _)| other == email) {
                    assert_eq!((first.status, &first.text), (201, &reply.text), "a replay");
                    assert!(reply.is_replay());
                }
                scene.assert_created(email, reply).await;
            }
        }
        scene.assert_whole().await;
    })
    .await;
}

fn is_of_round(mail: &Value, round: usize) -> bool {
    mail["to"].as_str().unwrap().starts_with(&format!("r{round}c"))
}

#[tokio::test]
async fn a_recorded_answer_is_sealed_and_survives_a_kill() {
    for mode in [MAILED, HANDED_DERIVED] {
        let mut scene = CreationScene::of(mode).await;
        let (died, done) = ("died@example.com", "done@example.com");
        scene.faults(0, "crash_after_commit", 1).await;
        scene.post(died).await.expect(500);
        scene.world.faults(json!({ "crash_after_commit": 0, "mail_failures": 2 })).await;
        let answer = scene.post(done).await.expect(201);
        let done_invitation = Invitation::from_reply(&answer);
        let staged = scene.world.table("idempotency").await;
        assert_eq!(staged.len(), 2);
        scene.world.kill_and_restart().await;
        scene.assert_created(done, answer).await;
        scene.retry_until_created(died).await;
        let finished = scene.created[1].1.clone();
        let died_invitation = match mode.send_welcome {
            true => Invitation::from_mail(&scene.world.mail().await[0]),
            false => Invitation::from_reply(&finished),
        };
        for claim in staged.into_iter().chain(scene.world.table("idempotency").await) {
            let bytes = bytes_of(&claim);
            for Invitation { password, token } in [&done_invitation, &died_invitation] {
                for secret in [password, token] {
                    assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{claim}");
                }
            }
        }
        scene.assert_whole().await;
    }
}
