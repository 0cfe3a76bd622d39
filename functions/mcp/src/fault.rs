//! Errors of the protocol.

use http::StatusCode;
use serde_json::{Value, json};

/// Codes of errors: those of JSON-RPC, and those of the protocol.
pub(crate) const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
pub(crate) const INTERNAL_ERROR: i32 = -32603;
pub(crate) const HEADER_MISMATCH: i32 = -32020;
pub(crate) const UNSUPPORTED_VERSION: i32 = -32022;
/// Tells of a limit, as the status of that number does.
pub(crate) const LIMITED: i32 = 429;

/// An error of the protocol.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    /// The id of the request, null if it is unknown. `None`: the error has no id.
    pub(crate) id: Option<Value>,
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Fault {
    /// A refusal with status 400, for a message whose id is unknown.
    pub(crate) fn bad(code: i32, message: &str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, id: Some(Value::Null), code, message: message.to_owned(), data: None }
    }

    pub(crate) fn with_id(self, id: Option<&Value>) -> Self {
        Self { id: Some(id.cloned().unwrap_or_default()), ..self }
    }

    pub(crate) fn body(self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = self.data {
            error["data"] = data;
        }
        let mut body = json!({ "jsonrpc": "2.0", "error": error });
        if let Some(id) = self.id {
            body["id"] = id;
        }
        body
    }
}
