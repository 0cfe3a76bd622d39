//! The AWS query protocol, which CloudFormation and STS speak: parameters in a form, responses in XML.

use std::fmt::Write as _;

use url::form_urlencoded;
use uuid::Uuid;

/// Returns a parameter of a form.
pub(crate) fn parameter(form: &[u8], name: &str) -> Option<String> {
    form_urlencoded::parse(form).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Renders a response. `result` is the content of the operation's result.
pub(crate) fn response(operation: &str, namespace: &str, result: &str) -> String {
    let id = element("RequestId", &Uuid::new_v4().to_string());
    format!(
        "<{operation}Response xmlns=\"{namespace}\"><{operation}Result>{result}</{operation}Result>\
         <ResponseMetadata>{id}</ResponseMetadata></{operation}Response>"
    )
}

/// Renders an error response.
pub(crate) fn error(code: &str, message: &str) -> String {
    let (code, message) = (element("Code", code), element("Message", message));
    let id = element("RequestId", &Uuid::new_v4().to_string());
    format!("<ErrorResponse><Error><Type>Sender</Type>{code}{message}</Error>{id}</ErrorResponse>")
}

/// Renders an element that contains a text.
pub(crate) fn element(name: &str, text: &str) -> String {
    let mut element = format!("<{name}>");
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = match c {
            '&' | '<' | '>' | '"' | '\'' => write!(element, "&#{};", u32::from(c)),
            c => element.write_char(c),
        };
    }
    let _ = write!(element, "</{name}>");
    element
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_decoded() {
        let form = b"Action=ListStackResources&StackName=a%2Bb+c&NextToken=";
        assert_eq!(parameter(form, "StackName").as_deref(), Some("a+b c"));
        assert_eq!(parameter(form, "NextToken").as_deref(), Some(""));
        assert_eq!(parameter(form, "Version"), None);
    }

    #[test]
    fn markup_in_a_text_is_escaped() {
        assert_eq!(element("A", "<b> & \"c\""), "<A>&#60;b&#62; &#38; &#34;c&#34;</A>");
        assert!(error("Code", "a<b").contains("<Code>Code</Code><Message>a&#60;b</Message>"));
    }
}
