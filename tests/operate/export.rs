//! `client export ID`: everything that is stored about a client, in a file, and nothing that is a secret.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::feed::erasure::{MARK, erased};
use crate::operate::client::{CONTACTS, ClientScene, EXTERNAL_ID, GOAL, NOTES, PHONE_END};
use crate::operate::{Ran, operate};
use crate::world::{Fact, World, list, members, time, uuid};

const REASON: &str = "request of the client, ticket 7";

/// Exports a client to a file of a directory, with these further options.
async fn export(world: &World, client: &str, to: &Path, options: &[&str]) -> Ran {
    let to = to.to_str().unwrap();
    let command = ["client", "export", client, "--to", to, "--reason", REASON];
    operate(world, &[&command, options].concat()).await
}

fn directory() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("client.json");
    (directory, path)
}

/// The lines of exports in the coach's trail.
async fn exports(world: &World) -> Vec<Value> {
    let trail = world.settings_of("ada").await.get("/settings/audit?limit=200").await.expect(200);
    let mut lines = list(trail.body["data"].clone());
    lines.retain(|line| line["action"] == "client.exported");
    lines
}

/// The names in a directory.
fn names(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn an_export_holds_everything_about_a_client_and_no_secret() {
    let ClientScene { world, endpoint, client, invitation, .. } = &ClientScene::new().await;
    let (directory, path) = directory();
    let before = world.tables().await;
    let done = export(world, client, &path, &["--yes"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let answer = json!({ "done": "client.exported", "target": client, "coach_id": "ada", "changed": true });
    assert_eq!(done.json, answer);
    assert_eq!(names(&directory), ["client.json"]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    let export: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(members(&export), ["client_id", "coach_id", "exported_at", "tables"]);
    assert_eq!([&export["client_id"], &export["coach_id"]], [&json!(client), &json!("ada")]);
    time(&export["exported_at"]);
    for output in [&done.stdout, &done.stderr] {
        assert!(!output.contains(MARK) && !output.contains("example.com"), "{output}");
    }

    // Each item that names the client, a contact, or a record of them in plain text is there, and no other.
    let [lead, other] = CONTACTS.map(uuid);
    let mut about: BTreeMap<String, usize> = BTreeMap::new();
    for (table, item) in before {
        let item = item.to_string();
        if [client, &lead, &other].iter().any(|id| item.contains(id.as_str())) {
            *about.entry(table).or_default() += 1;
        }
    }
    // The line of this export is in the trail by now.
    *about.entry("workspaces".to_owned()).or_default() += 1;
    let tables = export["tables"].as_object().unwrap();
    for (table, items) in tables {
        let count = about.remove(table).unwrap_or_default();
        assert_eq!(items.as_array().unwrap().len(), count, "{table}: {items:#}");
        assert!(count > 0, "the scene has something in {table}");
    }
    assert!(about.is_empty(), "{about:?}");

    // The content is opened, each value in its places.
    let email = format!("{MARK}.1@example.com");
    let second_email = format!("{MARK}.2@example.com");
    for (table, values) in [
        ("clients", &[email.as_str(), GOAL, NOTES, EXTERNAL_ID, PHONE_END][..]),
        ("crm", &[email.as_str(), second_email.as_str(), "moved away", "renamed", PHONE_END]),
        ("records", &["check-in-", "log-", "\"sleep\""]),
        ("idempotency", &[email.as_str(), "of the API", "renamed"]),
        ("outbox", &["client.activation_changed", email.as_str()]),
        ("deliveries", &[email.as_str(), "of the API", second_email.as_str()]),
        ("events", &[email.as_str(), "of the API", second_email.as_str()]),
        ("workspaces", &[REASON]),
        ("requests", &["/v1/clients/{clientId}"]),
    ] {
        let found = tables[table].to_string();
        for value in values {
            assert!(found.contains(value), "{value} in {table}: {found}");
        }
    }
    let excerpts =
        list(tables["deliveries"].clone()).into_iter().filter(|item| item["attempts"][0]["excerpt"].is_string());
    assert!(excerpts.count() > 0, "answers of receivers are opened");

    // Nothing that opens a door, nor its hash.
    let signatures: Vec<String> = world
        .delivery_items()
        .await
        .iter()
        .filter_map(|item| item["signature"]["S"].as_str().map(str::to_owned))
        .collect();
    assert!(!signatures.is_empty());
    let token_sha256 = hex::encode(Sha256::digest(&invitation.token));
    let secrets = [&invitation.password, &invitation.token, &endpoint.secret, &token_sha256];
    for secret in secrets.into_iter().chain(&signatures) {
        assert!(!text.contains(secret.as_str()), "{secret}");
    }
    for secret in ["argon2", "temp_password", "intake_url", "fingerprint", "sha256", "999@example.com"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn an_export_leaves_a_line_with_its_reason_that_the_next_export_shows() {
    let world = World::start().await;
    world.coach("ada").await;
    world.apply([Fact::client("ada", "c1")]).await;
    let (_directory, path) = directory();
    assert_eq!(export(&world, "c1", &path, &["--yes"]).await.code, 0);
    let lines = exports(&world).await;
    assert_eq!(lines.len(), 1);
    assert_eq!([&lines[0]["actor"], &lines[0]["target"]], [&json!("operator:local"), &json!("c1")]);
    assert_eq!(lines[0]["detail"], json!({ "reason": REASON }));
    let again = path.with_extension("again");
    assert_eq!(export(&world, "c1", &again, &["--yes"]).await.code, 0);
    let read: Value = serde_json::from_str(&fs::read_to_string(&again).unwrap()).unwrap();
    let actions: Vec<&Value> =
        read["tables"]["workspaces"].as_array().unwrap().iter().map(|line| &line["action"]).collect();
    assert_eq!(actions, ["client.exported", "client.exported"]);
}

#[tokio::test]
async fn an_export_that_cannot_be_made_leaves_neither_a_file_nor_a_line() {
    let world = World::start().await;
    world.coach("ada").await;
    world.apply(["c1", "c2"].map(|client| Fact::client("ada", client))).await;
    world.apply([erased("c2")]).await;
    let (directory, path) = directory();
    for (client, to, options, code) in [
        ("nobody", path.clone(), &["--yes"][..], "not_found"),
        ("c2", path.clone(), &["--yes"], "not_found"),
        // There is no answer on stdin.
        ("c1", path.clone(), &[], "declined"),
        ("c1", directory.path().join("missing/client.json"), &["--yes"], "refused"),
        ("c1", directory.path().to_owned(), &["--yes"], "refused"),
    ] {
        let refused = export(&world, client, &to, options).await;
        assert_eq!((refused.code, &refused.json["code"]), (1, &json!(code)), "{client} {}", refused.stdout);
        assert!(names(&directory).is_empty());
    }
    fs::write(&path, "mine").unwrap();
    let refused = export(&world, "c1", &path, &["--yes"]).await;
    assert_eq!((refused.code, &refused.json["code"]), (1, &json!("refused")), "{}", refused.stdout);
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(&directory).len()), ("mine", 1));
    assert!(exports(&world).await.is_empty());
    let without_reason = operate(&world, &["client", "export", "c1", "--to", "x.json", "--yes"]).await;
    assert_eq!((without_reason.code, &without_reason.json["code"]), (2, &json!("usage")));
}
