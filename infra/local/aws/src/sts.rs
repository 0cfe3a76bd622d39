//! STS: `GetCallerIdentity`.

use crate::access::Caller;
use crate::account::ACCOUNT;
use crate::answer::{Answer, ServiceError};
use crate::query::{element, response};

/// The API's version, which requests name.
pub(crate) const VERSION: &str = "2011-06-15";

const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";

/// Handles one request of the query protocol.
pub(crate) fn request(operation: &str, caller: Caller<'_>) -> Result<Answer, ServiceError> {
    if operation != "GetCallerIdentity" {
        let message = format!("The local stack's STS has GetCallerIdentity, not {operation}.");
        return Err(ServiceError::query(400, "InvalidAction", message));
    }
    let arn = caller.arn();
    let user_id = match (caller, arn.rsplit_once('/')) {
        (Caller::Environment(_) | Caller::Role(_), Some((_, session))) => format!("AROALOCAL:{session}"),
        _ => "AIDALOCAL".to_owned(),
    };
    let members = [("Arn", arn.as_str()), ("UserId", user_id.as_str()), ("Account", ACCOUNT)];
    let result = members.map(|(name, text)| element(name, text)).concat();
    Ok(Answer::xml(response(operation, NAMESPACE, &result)))
}
