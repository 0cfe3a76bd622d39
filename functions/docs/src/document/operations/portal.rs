//! `/portal`.

use edge::Problem;
use serde_json::json;

use super::documentation::{HTML, resource, text_answer};
use super::{Operation, Schemas};

/// The form of a file's name.
const FILE_PATTERN: &str = r"^[0-9a-f]{16}-portal\.(js|css)$";

pub(super) fn operations(_: &mut Schemas) -> Vec<Operation> {
    vec![
        resource("/portal", "showPortal", "Show the portal").answers(text_answer("The page.", HTML)),
        resource("/portal/assets/{file}", "readPortalFile", "Read a file of the portal")
            .parameter(json!({
                "name": "file", "in": "path", "required": true,
                "description": "The file's name, which contains a hash of the file. The page names its files.",
                "schema": { "type": "string", "pattern": FILE_PATTERN },
            }))
            .answers(text_answer("The file.", "text/javascript").content("text/css", json!({ "type": "string" })))
            .refuses([Problem::NotFound("file")]),
    ]
}
