//! CloudFormation's list of the stack's resources.

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::types::ResourceStatus;
use local_aws::{StackResource, stack_id};

use crate::world::World;

/// Resources of three pages. The first physical id holds markup.
fn resources() -> Vec<StackResource> {
    let resource = |number: usize| StackResource {
        logical_id: format!("Queue{number:02}"),
        physical_id: format!("http://127.0.0.1/?a=<{number}>&b=\"c\""),
        kind: "AWS::SQS::Queue".to_owned(),
    };
    (0..45).map(resource).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_are_listed_in_pages_by_the_stacks_name_or_id() {
    let world = World::new().await;
    world.aws.cloudformation().set_stack("stack", resources());
    let client = Client::new(&world.sdk());
    for name in ["stack".to_owned(), stack_id("stack")] {
        let (mut listed, mut sizes, mut token) = (Vec::new(), Vec::new(), None);
        loop {
            let page = client.list_stack_resources().stack_name(&name).set_next_token(token).send().await.unwrap();
            let summaries = page.stack_resource_summaries();
            sizes.push(summaries.len());
            listed.extend(summaries.iter().map(|summary| StackResource {
                logical_id: summary.logical_resource_id().unwrap().to_owned(),
                physical_id: summary.physical_resource_id().unwrap().to_owned(),
                kind: summary.resource_type().unwrap().to_owned(),
            }));
            assert!(summaries.iter().all(|it| it.resource_status() == Some(&ResourceStatus::CreateComplete)));
            assert!(summaries.iter().all(|it| it.last_updated_timestamp().is_some()));
            token = page.next_token().map(str::to_owned);
            if token.is_none() {
                break;
            }
        }
        assert_eq!(sizes, [20, 20, 5], "{name}");
        assert_eq!(listed, resources(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_stack_and_an_unknown_page_are_refused() {
    let world = World::new().await;
    let client = Client::new(&world.sdk());
    let list = |name: &str| client.list_stack_resources().stack_name(name);
    let none = list("stack").send().await.unwrap_err();
    assert_eq!(none.message(), Some("Stack with id stack does not exist"), "before there is a stack");
    world.aws.cloudformation().set_stack("stack", resources());
    for (request, message) in
        [(list("a<b"), "Stack with id a<b does not exist"), (list("stack").next_token("x"), "Invalid NextToken x")]
    {
        let refused = request.send().await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Some("ValidationError"), Some(message)));
        assert_eq!(refused.raw_response().unwrap().status().as_u16(), 400);
    }
    let beyond = list("stack").next_token("1000").send().await.unwrap();
    assert!(beyond.stack_resource_summaries().is_empty());
}
