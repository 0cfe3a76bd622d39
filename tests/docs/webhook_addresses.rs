//! `GET /.well-known/webhook-ips.json`: the addresses that webhooks come from, for firewalls of receivers.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::world::{Reply, World};

const ADDRESSES: &str = "/.well-known/webhook-ips.json";
const PARAMETER: &str = "WebhookAddresses";

/// The headers of an answer, without those that name the request or its time, and its body without the request's id.
fn comparable(reply: &Reply) -> (u16, BTreeSet<(String, String)>, String) {
    let changing = ["apigw-requestid", "content-length", "date", "x-request-id"];
    let headers = reply.headers.iter().filter(|(name, _)| !changing.contains(&name.as_str()));
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    let id = reply.header("x-request-id").unwrap_or_default();
    (reply.status, headers, reply.text.replace(id, ""))
}

#[tokio::test]
async fn the_list_has_the_ranges_of_the_parameter_in_its_order() {
    let list = "203.0.113.7,198.51.100.0/24,2001:db8::7,203.0.113.4,2001:db8:12::/48";
    let world = World::start_with_parameters(&[(PARAMETER, list)]).await;
    let caller = world.anonymous();
    let reply = caller.get(ADDRESSES).await.expect(200);
    let prefixes = ["203.0.113.7/32", "198.51.100.0/24", "2001:db8::7/128", "203.0.113.4/32", "2001:db8:12::/48"];
    assert_eq!(reply.body, json!({ "prefixes": prefixes }));
    assert_eq!(reply.header("cache-control"), Some("public, max-age=300"));
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
    let head = caller.call("HEAD", ADDRESSES).await.expect(200);
    assert_eq!((head.text.as_str(), head.header("cache-control")), ("", reply.header("cache-control")));
    let refused = caller.post(ADDRESSES, json!({})).await.refused(405, "method_not_allowed");
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
}

#[tokio::test]
async fn without_the_parameter_the_path_is_as_any_unknown_path() {
    let world = World::start().await;
    let caller = world.anonymous();
    for method in ["GET", "HEAD", "POST", "OPTIONS"] {
        for accept in ["*/*", "text/html", "application/problem+json"] {
            let call = |path| caller.call(method, path).header("accept", accept);
            let [own, other] = [call(ADDRESSES).await, call("/.well-known/nothing.json").await];
            assert_eq!(own.status, 404, "{method}, {accept}");
            assert_eq!(comparable(&own), comparable(&other), "{method}, {accept}");
        }
    }
}

#[tokio::test]
async fn a_list_with_another_entry_stops_the_function_by_the_name_of_both() {
    let world = World::start_with_parameters(&[(PARAMETER, "203.0.113.7,203.0.113.256")]).await;
    world.anonymous().get(ADDRESSES).await.expect(500);
    let log = world.log();
    for named in ["environment variable WEBHOOK_ADDRESSES", "203.0.113.256"] {
        assert!(log.contains(named), "{log}");
    }
}

#[test]
fn a_stack_with_an_unknown_parameter_exits_with_2() {
    let run = Command::new(env!("CARGO_BIN_EXE_stack-under-test"))
        .args([
            "--port",
            "0",
            "--aws-port",
            "0",
            "--no-demo",
            "--ephemeral",
            "--parameter",
            "WebhookAddress=203.0.113.7",
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("has no parameter WebhookAddress"), "{said}");
}
