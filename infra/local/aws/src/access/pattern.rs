//! IAM's wildcards: `*` stands for any number of characters, `?` for one.

/// Number of fields in an ARN. Further colons belong to the last field, the resource.
const ARN_FIELDS: usize = 6;

/// Matches an action against a pattern, ignoring case.
pub(super) fn action_matches(pattern: &str, action: &str) -> bool {
    matches(pattern.to_ascii_lowercase().as_bytes(), action.to_ascii_lowercase().as_bytes())
}

/// Matches a resource against a pattern field by field, so that a wildcard does not span fields of the ARN.
pub(super) fn resource_matches(pattern: &str, resource: &str) -> bool {
    if pattern == "*" || pattern == resource {
        return true;
    }
    let (mut patterns, mut fields) = (pattern.splitn(ARN_FIELDS, ':'), resource.splitn(ARN_FIELDS, ':'));
    loop {
        match (patterns.next(), fields.next()) {
            (None, None) => return true,
            (Some(pattern), Some(field)) if matches(pattern.as_bytes(), field.as_bytes()) => {}
            _ => return false,
        }
    }
}

/// Matches with backtracking to the latest `*` only. That is enough, since it can consume whatever an earlier `*`
/// could.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut in_text, mut latest_star) = (0, 0, None);
    while in_text < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                latest_star = Some((at, in_text));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[in_text] => {
                at += 1;
                in_text += 1;
            }
            _ => {
                let Some((star, swallowed)) = latest_star else { return false };
                latest_star = Some((star, swallowed + 1));
                at = star + 1;
                in_text = swallowed + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_any_characters_of_one_field() {
        let table = "arn:aws:dynamodb:us-east-1:000000000000:table/crm";
        for (pattern, resource, expected) in [
            ("*", "*", true),
            ("*", table, true),
            (table, table, true),
            (table, &format!("{table}-old"), false),
            (table, &format!("{table}/index/listed"), false),
            (&format!("{table}/index/*"), &format!("{table}/index/listed"), true),
            (&format!("{table}/index/*"), table, false),
            (&format!("{table}/index/l?st*"), &format!("{table}/index/listed"), true),
            (&format!("{table}/index/l?st"), &format!("{table}/index/listed"), false),
            ("arn:aws:dynamodb:*:*:table/*", table, true),
            ("arn:aws:*:table/crm", table, false),
            ("arn:aws:dynamodb:us-east-1:000000000000:*rm", table, true),
            ("arn:aws:dynamodb:us-east-1:000000000000:*a*a*m", table, false),
            (table, "*", false),
            ("arn:aws:sns:us-east-1:1:a:*", "arn:aws:sns:us-east-1:1:a:b:c", true),
        ] {
            assert_eq!(resource_matches(pattern, resource), expected, "{pattern} {resource}");
        }
    }

    #[test]
    fn actions_match_in_any_case() {
        assert!(action_matches("DynamoDB:putitem", "dynamodb:PutItem"));
        assert!(action_matches("dynamodb:*Item", "dynamodb:PutItem"));
        assert!(action_matches("*", "dynamodb:PutItem"));
        assert!(!action_matches("dynamodb:Put", "dynamodb:PutItem"));
        assert!(!action_matches("sqs:*", "dynamodb:PutItem"));
    }
}
