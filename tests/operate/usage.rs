//! Command lines that cannot work, and stacks that cannot be reached: one line that says what to do, nothing written.

use serde_json::json;

use super::{ACTOR, DEVELOPER, READER, answered, command, operate, operate_as, ran, run, trail};
use crate::world::World;

#[tokio::test]
async fn a_wrong_command_line_is_exit_2_before_any_call() {
    let nowhere = "http://127.0.0.1:1";
    for (arguments, cause) in [
        (&["frobnicate"][..], "frobnicate"),
        (&["coach"], "ID"),
        (&["coach", "a/b"], "<ID>"),
        (&["key", "revoke", "key_1"], "--reason"),
        (&["key", "revoke", "key_1", "--reason", " "], "--reason"),
        (&["feed", "--stack", "partner-api"], "--local"),
        (&["endpoint", "delete", "we_1"], "delete"),
    ] {
        let error = run(nowhere, DEVELOPER, arguments, "").await.refused(2, "usage");
        assert!(error.contains(cause), "{error}");
    }
    let bare = ran(command(DEVELOPER).args(["feed", "--json"]).output().await.unwrap());
    assert!(bare.refused(2, "usage").contains("--stack"));
}

#[tokio::test]
async fn a_failure_without_json_is_one_line_on_stderr() {
    let failed = ran(command(DEVELOPER).args(["feed"]).output().await.unwrap());
    assert_eq!((failed.code, failed.stdout.as_str()), (2, ""));
    assert_eq!(failed.stderr.lines().count(), 1, "{}", failed.stderr);
}

#[tokio::test]
async fn a_stack_that_is_not_there_is_not_found_and_one_that_does_not_answer_is_unreachable() {
    let error = run("http://127.0.0.1:1", DEVELOPER, &["feed"], "").await.refused(1, "unreachable");
    assert!(error.contains("did not answer"), "{error}");
    let world = World::start().await;
    let at_stack = |stack: &'static str, region: &'static str, url: String| async move {
        let mut command = command(DEVELOPER);
        command.env("AWS_ENDPOINT_URL", url).env("AWS_REGION", region).args(["--stack", stack, "--json", "feed"]);
        ran(command.output().await.unwrap())
    };
    let error = at_stack("partner-apj", "us-east-1", world.aws_url()).await.refused(1, "not_found");
    assert!(error.contains("no stack partner-apj in us-east-1"), "{error}");
    at_stack("partner-api", "us-east-1", world.aws_url()).await.expect();
    let error = at_stack("partner-api", "", world.aws_url()).await.refused(2, "usage");
    assert!(error.contains("AWS_REGION"), "{error}");
}

#[tokio::test]
async fn missing_credentials_and_permissions_are_named() {
    let world = World::start().await;
    let mut without = command(DEVELOPER);
    without.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    without.env("AWS_ENDPOINT_URL", world.aws_url()).env("AWS_REGION", "us-east-1");
    let error = ran(without.args(["--stack", "partner-api", "--json", "feed"]).output().await.unwrap());
    assert!(error.refused(1, "unreachable").contains("credentials"));

    let (key, id) = {
        let ada = world.coach("ada").await;
        let settings = ada.settings().await;
        let created = json!({ "name": "sync", "scope": "partner", "permissions": ["clients.read"] });
        let created = settings.post("/settings/keys", created).await.expect(201);
        (created.str("key").to_owned(), created.str("id").to_owned())
    };
    let revoke = ["key", "revoke", &id, "--reason", "leaked", "--yes"];
    let error = operate_as(&world, READER, &revoke).await.refused(1, "refused");
    assert!(error.contains("permission"), "{error}");
    world.anonymous().with_bearer(&key).get("/v1/ping").await.expect(200);
    assert!(trail(&world, "ada").await.is_empty());
    // A policy for something else.
    let error = operate_as(&world, "KeyPolicy", &["feed"]).await.refused(1, "refused");
    assert!(error.contains("cloudformation:ListStackResources"), "{error}");
}

#[tokio::test]
async fn an_act_that_is_not_confirmed_changes_nothing() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint("http://127.0.0.1:1/hook?token=secret", "identifiers").await;
    let disable = ["endpoint", "disable", &endpoint.id, "--coach", "ada", "--reason", "harms"];
    for answer in ["", "n\n", "yes please\n"] {
        let declined = answered(&world, &disable, answer).await;
        assert!(declined.stderr.contains("(y/n)") && !declined.stderr.contains("secret"), "{}", declined.stderr);
        declined.refused(1, "declined");
    }
    assert!(trail(&world, "ada").await.is_empty());
    assert_eq!(answered(&world, &disable, "Y\n").await.expect()["changed"], true);
    assert_eq!(trail(&world, "ada").await.len(), 1);
}

#[tokio::test]
async fn an_id_of_another_kind_is_not_found_and_nothing_is_written() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint("http://127.0.0.1:1/", "identifiers").await;
    for arguments in [
        &["coach", &endpoint.id][..],
        &["client", "ada"],
        &["delivery", &endpoint.id, "--coach", "ada"],
        &["key", "revoke", &endpoint.id, "--reason", "r", "--yes"],
        &["endpoint", "disable", "ada", "--coach", "ada", "--reason", "r", "--yes"],
        &["endpoint", "disable", "we_1", "--reason", "r", "--yes"],
        &["delivery", "retry", "dlv_1", "--reason", "r", "--yes"],
        &["rebuild", "counts", &endpoint.id],
    ] {
        operate_as(&world, ACTOR, arguments).await.refused(1, "not_found");
    }
    assert!(trail(&world, "ada").await.is_empty());
}

#[tokio::test]
async fn a_table_for_people_has_what_the_json_has() {
    let world = World::start().await;
    world.coach("ada").await;
    let json = operate(&world, &["coach", "ada"]).await.expect();
    let port = world.aws_url().rsplit(':').next().unwrap().to_owned();
    let shown = ran(command(READER).args(["coach", "ada", "--local", "--aws-port", &port]).output().await.unwrap());
    assert_eq!(shown.code, 0, "{shown:?}");
    for name in ["coach_id", "clients.stored", "keys.live", "entitlements.pro_crm", "unsent", "endpoints: 0"] {
        assert!(shown.stdout.contains(name), "{name}: {}", shown.stdout);
    }
    assert_eq!(json["coach_id"], "ada");
}
