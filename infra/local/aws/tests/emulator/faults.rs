//! Faults of the store and of functions.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use local_aws::FaultPlan;

use crate::world::World;

/// Returns a function environment's client without retries.
fn client(world: &World) -> Client {
    let config = aws_sdk_dynamodb::config::Builder::from(&world.environment("f")).retry_config(RetryConfig::disabled());
    Client::from_conf(config.build())
}

fn key(pk: &str) -> AttributeValue {
    AttributeValue::S(pk.to_owned())
}

async fn put(client: &Client, pk: &str) -> Result<(), String> {
    let put = client.put_item().table_name("outbox").item("pk", key(pk)).send().await;
    put.map(drop).map_err(|error| error.code().unwrap_or_default().to_owned())
}

async fn transact(client: &Client, pks: &[&str]) -> Result<(), aws_sdk_dynamodb::Error> {
    transact_once(client, pks, None).await
}

/// A transaction under a token, or under one that the SDK chooses.
async fn transact_once(client: &Client, pks: &[&str], token: Option<&str>) -> Result<(), aws_sdk_dynamodb::Error> {
    let write = |pk: &&str| {
        let put = Put::builder().table_name("outbox").item("pk", key(pk)).build().unwrap();
        TransactWriteItem::builder().put(put).build()
    };
    let writes = pks.iter().map(write).collect();
    let transaction = client.transact_write_items().set_transact_items(Some(writes));
    transaction.set_client_request_token(token.map(str::to_owned)).send().await?;
    Ok(())
}

async fn exists(client: &Client, pk: &str) -> bool {
    client.get_item().table_name("outbox").key("pk", key(pk)).send().await.unwrap().item.is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_request_has_no_effect_and_one_with_a_lost_answer_has() {
    let world = World::new().await;
    world.outbox().await;
    let (function, developer) = (client(&world), Client::new(&world.sdk()));
    world.aws.faults().set(FaultPlan { store_failures: Some(1), ..FaultPlan::default() });
    put(&developer, "developer").await.expect("a developer's own calls always work");
    assert_eq!(put(&function, "refused").await, Err("InternalServerError".to_owned()));
    assert!(!exists(&function, "refused").await);
    world.aws.faults().set(FaultPlan { store_lost_answers: Some(1), ..FaultPlan::default() });
    assert_eq!(put(&function, "lost").await, Err("InternalServerError".to_owned()));
    assert!(exists(&function, "lost").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_hit_writes_alone() {
    let world = World::new().await;
    world.outbox().await;
    let function = client(&world);
    world.aws.faults().set(FaultPlan { store_conflicts: Some(2), ..FaultPlan::default() });
    assert!(!exists(&function, "a").await, "a read works");
    let Err(aws_sdk_dynamodb::Error::TransactionCanceledException(cancelled)) = transact(&function, &["a", "b"]).await
    else {
        panic!("the transaction is cancelled")
    };
    let codes: Vec<_> = cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).collect();
    assert_eq!(codes, ["TransactionConflict", "None"]);
    assert_eq!(put(&function, "a").await, Err("TransactionConflictException".to_owned()));
    assert_eq!(put(&function, "a").await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_that_dies_after_its_commit_never_reads_the_answer() {
    let world = World::new().await;
    world.outbox().await;
    let function = client(&world);
    world.aws.faults().set(FaultPlan { crash_after_commit: Some(1), ..FaultPlan::default() });
    let invocation = world.aws.calls().begin("f");
    let crashed = invocation.crashed.clone();
    tokio::select! {
        answer = transact(&function, &["a"]) => panic!("an answer: {answer:?}"),
        () = crashed.wait() => {}
    }
    assert_eq!(invocation.finish().len(), 1, "the commit is in the log");
    assert!(exists(&function, "a").await);
    assert_eq!(world.aws.faults().current()["crash_after_commit"], 0);
    let _next = world.aws.calls().begin("f");
    transact(&function, &["b"]).await.expect("the next environment works");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_committed_transaction_whose_answer_was_lost_does_not_conflict_with_itself() {
    let world = World::new().await;
    world.outbox().await;
    let function = client(&world);
    let faults = FaultPlan { store_lost_answers: Some(1), ..FaultPlan::default() };
    world.aws.faults().set(faults);
    transact_once(&function, &["a"], Some("first")).await.unwrap_err();
    world.aws.faults().set(FaultPlan { store_conflicts: Some(1), ..FaultPlan::default() });
    transact_once(&function, &["a"], Some("first")).await.expect("it is committed");
    let conflict = transact_once(&function, &["b"], Some("second")).await.unwrap_err();
    assert_eq!(conflict.code(), Some("TransactionCanceledException"));
    // An empty key is refused, so nothing is committed.
    world.aws.faults().set(FaultPlan { store_lost_answers: Some(1), ..FaultPlan::default() });
    transact_once(&function, &[""], Some("third")).await.unwrap_err();
    world.aws.faults().set(FaultPlan { store_conflicts: Some(1), ..FaultPlan::default() });
    let conflict = transact_once(&function, &["c"], Some("third")).await.unwrap_err();
    assert_eq!(conflict.code(), Some("TransactionCanceledException"));
}
