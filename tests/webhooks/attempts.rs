//! Attempts that are under way while something becomes another: what was read of their endpoint before says nothing of how it is when they
//! end, and their client may be erased.

use std::time::Duration;

use serde_json::json;

use crate::feed::erasure::erased;
use crate::webhooks::endpoint_states::Place;
use crate::world::{Answer, Fact, list};

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;
/// Longer than what was read of an endpoint is relied on.
const SLOWLY: Duration = Duration::from_millis(2_500);

impl Place {
    /// The next attempts are under way, so many of them having been made before.
    async fn until_asked(&self, before: usize) {
        while self.receiver.hooks().len() == before {
            self.world.now().await;
        }
    }
}

#[tokio::test]
async fn an_attempt_that_is_under_way_when_its_endpoint_ends_is_the_last() {
    for (ending, reason) in [
        ("off", "not sent: endpoint disabled"),
        ("deleted", "not sent: endpoint deleted"),
        ("gone", "not sent: endpoint gone"),
    ] {
        let place = Place::new().await;
        let (ada, endpoint, settings) = place.coach().await;
        let path = format!("/settings/webhooks/{}", endpoint.id);
        place.receiver.script([Answer::status(500).after(SLOWLY)]);
        place.receiver.otherwise(Answer::status(410));
        place.world.put([Fact::client("ada", "c1")]).await;
        place.until_asked(0).await;
        match ending {
            "off" => drop(settings.patch(&path, json!({ "enabled": false })).await.expect(200)),
            "deleted" => drop(settings.delete(&path).await.expect(200)),
            _ => place.event("c2").await,
        }
        place.world.settle().await;
        if ending == "deleted" {
            let stored = place.world.table("deliveries").await;
            let texts: Vec<String> = stored.iter().map(ToString::to_string).collect();
            assert!(texts.len() == 1 && texts[0].contains("\"failed\"") && texts[0].contains(reason), "{texts:?}");
            continue;
        }
        let deliveries = ada.deliveries(&endpoint).await;
        let slow = deliveries.iter().find(|delivery| delivery["attempts"][0]["status_code"] == 500).unwrap();
        let lines = list(slow["attempts"].clone());
        assert_eq!((&slow["status"], lines.len()), (&json!("failed"), 2), "{ending}: {slow}");
        assert_eq!(lines[1]["error"], reason);
        assert!(slow["next_attempt_at"].is_null());
    }
}

#[tokio::test]
async fn a_slow_success_counts_though_another_attempt_has_failed_meanwhile() {
    let place = Place::new().await;
    let _ = place.coach().await;
    place.receiver.script([Answer::status(204).after(SLOWLY), Answer::status(500)]);
    place.world.put([Fact::client("ada", "slow")]).await;
    place.until_asked(0).await;
    place.world.put([Fact::client("ada", "fails")]).await;
    place.world.settle().await;
    assert_eq!(place.receiver.hooks().len(), 2);
    assert!(place.failing_since().await.is_null());
    // The retry succeeds by itself.
    place.world.advance_s(DAY_S).await;
    assert_eq!(place.receiver.hooks().len(), 3);
}

#[tokio::test]
async fn a_slow_failure_counts_though_another_attempt_has_succeeded_meanwhile() {
    let place = Place::new().await;
    let _ = place.coach().await;
    place.receiver.script([Answer::status(500), Answer::status(500).after(SLOWLY), Answer::status(204)]);
    place.event("fails").await;
    let since = place.failing_since().await;
    assert!(since.is_string());
    // Its retry fails slowly, while another event is taken.
    let retried = place.world.advance_s(10);
    let taken = async {
        place.until_asked(1).await;
        place.world.put([Fact::client("ada", "taken")]).await;
    };
    futures::future::join(retried, taken).await;
    place.world.settle().await;
    assert_eq!(place.receiver.hooks().len(), 3);
    let anew = place.failing_since().await;
    assert!(anew.is_string() && anew != since, "{anew}");
}

#[tokio::test]
async fn the_log_says_what_was_sent_of_a_client_who_is_erased_meanwhile_and_nothing_else() {
    for (status, ending) in [(200, "delivered"), (500, "failed")] {
        let place = Place::new().await;
        let (ada, endpoint, _) = place.coach().await;
        place.receiver.script([Answer::status(status).body("Hello Gwendolyn").after(SLOWLY)]);
        place.world.put([Fact::client("ada", "c1")]).await;
        place.until_asked(0).await;
        place.world.put([erased("c1")]).await;
        place.world.advance_s(DAY_S).await;
        assert_eq!(place.receiver.hooks().len(), 1, "it is the last");
        let delivery = ada.deliveries(&endpoint).await.remove(0);
        let lines = list(delivery["attempts"].clone());
        assert_eq!((&delivery["status"], &lines[0]["status_code"]), (&json!(ending), &json!(status)), "{delivery}");
        assert!(lines[0]["duration_ms"].as_u64() >= Some(2_000) && lines[0]["response_excerpt"].is_null());
        let errors: Vec<_> = lines[1..].iter().map(|line| line["error"].as_str().unwrap()).collect();
        let expected = if status == 200 { vec![] } else { vec!["not sent: client erased"] };
        assert_eq!(errors, expected);
    }
}
