//! `POST /v1/clients` that dies or meets a fault at each of its calls in turn: there is one client with one intake, one
//! event and one answer, and its credentials work. `takeovers` covers requests that take over a claim.

mod kills;

use serde_json::json;
use std::collections::BTreeSet;

use crate::world::{Application, Call, Caller, Invitation, LAPSED_S, Receiver, Reply, SDK_ATTEMPTS, World};

/// Longer than a visibility time-out, the longest wait of a stream's retries and a run of the schedule together.
const RECOVERED_S: u64 = 20 * 60;
/// Fewest calls of a creation: the key, the claim, two reads, the transaction.
pub(crate) const FEWEST_CALLS: usize = 5;
/// More calls than any creation makes, retries included.
pub(crate) const MOST_CALLS: usize = 40;

/// How a client is requested.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    pub(crate) send_welcome: bool,
    /// A header names the key; otherwise the key is derived from the address.
    pub(crate) header: bool,
}

pub(crate) const MAILED: Mode = Mode { send_welcome: true, header: true };
pub(crate) const HANDED: Mode = Mode { send_welcome: false, header: true };
pub(crate) const MAILED_DERIVED: Mode = Mode { header: false, ..MAILED };
pub(crate) const HANDED_DERIVED: Mode = Mode { header: false, ..HANDED };
pub(crate) const MODES: [Mode; 4] = [MAILED, HANDED, MAILED_DERIVED, HANDED_DERIVED];

/// A world whose clients are all requested in one way.
pub(crate) struct CreationScene {
    pub(crate) world: World,
    pub(crate) receiver: Receiver,
    pub(crate) key: Caller,
    pub(crate) mode: Mode,
    /// Each creation's final answer, by address.
    pub(crate) created: Vec<(String, Reply)>,
}

impl CreationScene {
    pub(crate) async fn of(mode: Mode) -> Self {
        let world = World::start().await;
        let receiver = Receiver::start().await;
        let ada = world.coach("ada").await;
        ada.endpoint(&receiver.url(), "identifiers").await;
        let key = ada.partner_key().await;
        Self { world, receiver, key, mode, created: Vec::new() }
    }

    pub(crate) fn post(&self, email: &str) -> Call {
        let body = json!({ "email": email, "external_id": email, "send_welcome": self.mode.send_welcome });
        let call = self.key.post("/v1/clients", body);
        if self.mode.header { call.idempotent(email) } else { call }
    }

    /// Sets a fault of the creating function, after `spared_calls` of its calls.
    pub(crate) async fn faults(&self, spared_calls: usize, fault: &str, times: usize) {
        self.world.faults(json!({ "function": "clients", "spared_calls": spared_calls, fault: times })).await;
    }

    pub(crate) async fn no_faults(&self) {
        self.world.clear_faults().await;
    }

    /// Repeats an unanswered request until the client is created. Returns whether the first repeat succeeded.
    pub(crate) async fn retry_until_created(&mut self, email: &str) -> bool {
        let first = self.post(email).await;
        let at_once = first.status != 409;
        let reply = if at_once {
            first
        } else {
            first.assert_in_progress();
            self.world.advance_s(LAPSED_S).await;
            self.post(email).await
        };
        self.assert_created(email, reply.expect(201)).await;
        at_once
    }

    /// Asserts that this answer is a creation and is replayed.
    pub(crate) async fn assert_created(&mut self, email: &str, reply: Reply) {
        let replay = self.post(email).await.expect(201);
        assert!(replay.is_replay());
        assert_eq!(replay.text, reply.text);
        assert_eq!(replay.header("idempotency-payload-mismatch"), None);
        self.created.push((email.to_owned(), reply));
    }

    /// Asserts that each address has one client, and that the application and the receiver know each once.
    pub(crate) async fn assert_whole(&self) {
        self.world.settle().await;
        self.world.advance_s(RECOVERED_S).await;
        for kind in ["CLIENT#", "INTAKE#", "EMAIL#", "EXTERNAL_ID#"] {
            assert_eq!(self.world.items("clients", kind).await.len(), self.created.len(), "{kind}");
        }
        let ping = self.key.get("/v1/ping").await.expect(200);
        assert_eq!(ping.body["active_clients"], self.created.len());
        assert!(self.world.table("outbox").await.is_empty(), "published entries are deleted");
        let facts = self.world.changes("client.created").await;
        let ids: BTreeSet<&str> = facts.iter().map(|fact| fact["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), self.created.len(), "one change each");
        let application = Application::of(&self.world).await;
        let mails = self.world.mail().await;
        let hooks: BTreeSet<(String, String)> = self
            .receiver
            .hooks()
            .iter()
            .map(|hook| {
                let client = hook.json()["data"]["client"]["id"].as_str().unwrap().to_owned();
                (client, hook.header("webhook-id").to_owned())
            })
            .collect();
        assert_eq!(hooks.len(), self.created.len());
        for (email, reply) in &self.created {
            assert_eq!(reply.str("email"), email);
            assert!(hooks.iter().any(|(client, _)| client == reply.str("client_id")));
            let invitations: Vec<Invitation> =
                mails.iter().filter(|mail| mail["to"] == email.as_str()).map(Invitation::from_mail).collect();
            let sent = reply.body["welcome_email_sent"] == true;
            assert!(invitations.len() <= 2, "{email} was mailed {} times", invitations.len());
            assert!(!sent || !invitations.is_empty(), "{email} was mailed");
            assert!(self.mode.send_welcome || invitations.is_empty());
            assert_eq!(Invitation::try_from_reply(reply).is_some(), !sent);
            for invitation in invitations.iter().cloned().chain(Invitation::try_from_reply(reply)) {
                assert!(application.welcomes(email, &invitation), "{email} {invitation:?}");
            }
            self.assert_intake(email, if sent { "sent" } else { "issued" }).await;
        }
    }

    /// As [`CreationScene::assert_whole`], and also without duplicates at the receiver.
    pub(crate) async fn assert_whole_without_duplicates(&self) {
        self.assert_whole().await;
        assert_eq!(self.world.changes("client.created").await.len(), self.created.len());
        assert_eq!(self.receiver.hooks().len(), self.created.len());
    }

    /// Asserts the state of the client's intake, also on the bus.
    async fn assert_intake(&self, email: &str, state: &str) {
        let facts = self.world.changes("client.created").await;
        let fact = facts.iter().find(|fact| fact["client"]["email"] == email).unwrap();
        assert_eq!(fact["intake"]["state"], state, "{email}");
        let client = fact["client"]["client_id"].as_str().unwrap();
        let items = self.world.items("clients", &format!("INTAKE#{client}")).await;
        assert_eq!(items.len(), 1);
        assert_eq!(items[0]["state"]["S"], state, "{email}");
    }
}

/// Plays scenes of all modes in parallel, since they mostly wait.
pub(crate) async fn for_all_modes(modes: &[Mode], play: impl AsyncFn(CreationScene)) {
    let plays = modes.iter().map(async |mode| play(CreationScene::of(*mode).await).await);
    futures::future::join_all(plays).await;
}

/// A creation dies at each point in turn until it succeeds. Each time the retry completes it.
async fn crash_at_each_call(mut scene: CreationScene, fault: &str) {
    let mut points = 0;
    for spared_calls in 0..MOST_CALLS {
        let email = format!("{fault}-{spared_calls}@example.com");
        scene.faults(spared_calls, fault, 1).await;
        let reply = scene.post(&email).await;
        scene.no_faults().await;
        if reply.status == 201 {
            scene.assert_created(&email, reply).await;
            break;
        }
        reply.expect(500);
        scene.retry_until_created(&email).await;
        points += 1;
    }
    assert!((FEWEST_CALLS..MOST_CALLS - 1).contains(&points), "{points} points in {:?}", scene.mode);
    scene.assert_whole_without_duplicates().await;
}

#[tokio::test]
async fn a_creation_that_dies_before_any_of_its_calls_is_completed_by_the_retry() {
    for_all_modes(&MODES, async |scene| crash_at_each_call(scene, "crash_before_call").await).await;
}

#[tokio::test]
async fn a_creation_that_dies_after_any_of_its_commits_is_completed_by_the_retry() {
    for_all_modes(&MODES, async |scene| crash_at_each_call(scene, "crash_after_commit").await).await;
}

/// A fault of the store meets `times` calls in a row, from each call of a creation on in turn. The caller gets the
/// result or a clean error, and the retry completes the creation: at once, if the call that ends the claim was spared.
async fn fault_at_each_call(mut scene: CreationScene, fault: &str, times: usize, ends_claims: bool) {
    for spared_calls in 0..MOST_CALLS {
        let email = format!("{fault}-{times}-{spared_calls}@example.com");
        scene.faults(spared_calls, fault, times).await;
        let reply = scene.post(&email).await;
        let is_over = scene.world.remaining_faults().await["spared_calls"] != 0;
        scene.no_faults().await;
        if reply.status == 201 {
            scene.assert_created(&email, reply).await;
        } else {
            let failure = reply.refused(500, "internal");
            assert!(failure.error().contains("same Idempotency-Key"), "{}", failure.text);
            let at_once = scene.retry_until_created(&email).await;
            assert!(at_once || !ends_claims, "{spared_calls} calls in {:?}: the retry had to wait", scene.mode);
        }
        if is_over {
            assert!(spared_calls >= FEWEST_CALLS);
            break;
        }
    }
    scene.assert_whole_without_duplicates().await;
}

/// Failures in a row after which all parallel calls fail for good, or one of them and the call that ends its claim.
const ALL_FOR_GOOD: usize = 3 * SDK_ATTEMPTS;
/// Conflicts in a row after which a write is given up.
const CONFLICTS_FOR_GOOD: usize = 12;

/// The time for the work counts from the request's arrival. Otherwise a slow authentication would take the time in
/// which the claim is released.
#[tokio::test]
async fn a_creation_that_runs_out_of_time_releases_its_claim() {
    let mut scene = CreationScene::of(MAILED).await;
    let first = scene.post("first@example.com").await.expect(201);
    let invocations = scene.world.calls("clients").await;
    let made = invocations[0]["calls"].as_array().unwrap();
    let before_the_mail = made.iter().position(|call| call["operation"] == "SendEmail").unwrap();
    scene.assert_created("first@example.com", first).await;
    // Two tries of the authentication stall, and two of the mail.
    let slow = json!({ "function": "clients", "store_latency_ms": 1500, "stalled_calls": 2 });
    scene.world.faults(slow).await;
    let stall_the_mail = async {
        scene.world.until_stalled().await;
        scene.world.faults(json!({ "spared_calls": before_the_mail, "stalled_calls": 2 })).await;
    };
    let (reply, ()) = tokio::join!(scene.post("second@example.com").into_future(), stall_the_mail);
    reply.refused(500, "internal");
    scene.no_faults().await;
    assert!(scene.retry_until_created("second@example.com").await, "the claim was released");
}

#[tokio::test]
async fn refused_calls_are_absorbed_or_repaired_by_the_retry() {
    let one =
        for_all_modes(&[MAILED], async |scene| fault_at_each_call(scene, "store_failures", SDK_ATTEMPTS, true).await);
    let all = for_all_modes(&[HANDED_DERIVED], async |scene| {
        fault_at_each_call(scene, "store_failures", ALL_FOR_GOOD, false).await
    });
    futures::future::join(one, all).await;
}

#[tokio::test]
async fn lost_answers_are_absorbed_or_repaired_by_the_retry() {
    let absorbed =
        for_all_modes(&[MAILED, HANDED], async |scene| fault_at_each_call(scene, "store_lost_answers", 1, true).await);
    // A claim whose answer was lost is abandoned until it lapses.
    let one = for_all_modes(&[MAILED_DERIVED], async |scene| {
        fault_at_each_call(scene, "store_lost_answers", SDK_ATTEMPTS, false).await
    });
    let all = for_all_modes(&[HANDED_DERIVED], async |scene| {
        fault_at_each_call(scene, "store_lost_answers", ALL_FOR_GOOD, false).await
    });
    futures::future::join3(absorbed, one, all).await;
}

#[tokio::test]
async fn conflicts_are_absorbed_or_repaired_by_the_retry() {
    let absorbed = for_all_modes(&[MAILED_DERIVED, HANDED], async |scene| {
        fault_at_each_call(scene, "store_conflicts", 1, true).await
    });
    let for_good = for_all_modes(&[MAILED, HANDED_DERIVED], async |scene| {
        fault_at_each_call(scene, "store_conflicts", CONFLICTS_FOR_GOOD, true).await;
    });
    futures::future::join(absorbed, for_good).await;
}
