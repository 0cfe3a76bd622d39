//! CloudFormation: `ListStackResources` of the stack that template.yaml makes.

use std::sync::{PoisonError, RwLock};

use chrono::SecondsFormat;

use crate::account::stack_id;
use crate::answer::{Answer, ServiceError};
use crate::query::{element, parameter, response};
use crate::time::StackTime;

/// The API's version, which requests name.
pub(crate) const VERSION: &str = "2010-05-15";

const NAMESPACE: &str = "http://cloudformation.amazonaws.com/doc/2010-05-15/";
/// Number of resources in a page. AWS has a hundred, which would put the whole template into one page.
const PAGE_RESOURCES: usize = 20;

/// CloudFormation.
pub struct CloudFormation {
    stack: RwLock<Stack>,
    time: StackTime,
}

/// A resource of the stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackResource {
    /// The logical id in the template.
    pub logical_id: String,
    /// The physical id: the value of `Ref`.
    pub physical_id: String,
    /// The type, such as `AWS::SQS::Queue`.
    pub kind: String,
}

#[derive(Default)]
struct Stack {
    name: String,
    resources: Vec<StackResource>,
    created_at: String,
}

impl CloudFormation {
    pub(crate) fn new(time: StackTime) -> Self {
        Self { stack: RwLock::default(), time }
    }

    /// Sets the stack and its resources. There is no other stack.
    pub fn set_stack(&self, name: &str, resources: Vec<StackResource>) {
        let created_at = self.time.now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let stack = Stack { name: name.to_owned(), resources, created_at };
        *self.stack.write().unwrap_or_else(PoisonError::into_inner) = stack;
    }

    /// Handles one request of the query protocol.
    pub(crate) fn request(&self, operation: &str, form: &[u8]) -> Result<Answer, ServiceError> {
        if operation != "ListStackResources" {
            let message = format!("The local stack's CloudFormation has ListStackResources, not {operation}.");
            return Err(ServiceError::query(400, "InvalidAction", message));
        }
        let stack = self.stack.read().unwrap_or_else(PoisonError::into_inner);
        let wanted = parameter(form, "StackName").unwrap_or_default();
        if stack.resources.is_empty() || (wanted != stack.name && wanted != stack_id(&stack.name)) {
            return Err(invalid(format!("Stack with id {wanted} does not exist")));
        }
        // A token is the number of the resources before its page.
        let start: usize = match parameter(form, "NextToken") {
            Some(token) => token.parse().map_err(|_| invalid(format!("Invalid NextToken {token}")))?,
            None => 0,
        };
        let rest = stack.resources.get(start..).unwrap_or_default();
        let (page, later) = rest.split_at(rest.len().min(PAGE_RESOURCES));
        let members: String = page.iter().map(|resource| member(resource, &stack.created_at)).collect();
        let mut result = format!("<StackResourceSummaries>{members}</StackResourceSummaries>");
        if !later.is_empty() {
            result.push_str(&element("NextToken", &(start + page.len()).to_string()));
        }
        Ok(Answer::xml(response(operation, NAMESPACE, &result)))
    }
}

fn member(resource: &StackResource, created_at: &str) -> String {
    let members = [
        ("LogicalResourceId", resource.logical_id.as_str()),
        ("PhysicalResourceId", resource.physical_id.as_str()),
        ("ResourceType", resource.kind.as_str()),
        ("LastUpdatedTimestamp", created_at),
        ("ResourceStatus", "CREATE_COMPLETE"),
    ];
    format!("<member>{}</member>", members.map(|(name, text)| element(name, text)).concat())
}

fn invalid(message: String) -> ServiceError {
    ServiceError::query(400, "ValidationError", message)
}
