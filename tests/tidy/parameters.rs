//! Parameters of template.yaml: a value that cannot work is refused before the deploy begins, with the rule.

use std::collections::BTreeMap;

use regex_lite::Regex;

use crate::tidy::template::template;

/// Values that a parameter takes, and values that it refuses.
struct Examples {
    taken: &'static [&'static str],
    refused: &'static [&'static str],
}

const CERTIFICATE: &str = "arn:aws:acm:eu-west-1:123456789012:certificate/12345678-1234-1234-1234-123456789012";
const TOPIC: &str = "arn:aws-us-gov:sns:us-gov-west-1:123456789012:alarms";

const EXAMPLES: [(&str, Examples); 16] = [
    (
        "OtherModeAddress",
        Examples {
            taken: &["", "https://sandbox.example.com", "https://localhost:8443"],
            refused: &[
                "sandbox.example.com",
                "http://sandbox.example.com",
                "https://Sandbox.example.com",
                "https://a.example/",
            ],
        },
    ),
    ("NamePrefix", Examples { taken: &["", "r2-"], refused: &["R2", "r2_", "longer-than-twenty-signs"] }),
    (
        "SettingsIssuer",
        Examples {
            taken: &[
                "https://login.example.com",
                "https://example.eu.auth0.com/",
                "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Ab12",
                "https://login.example.com:8443/realms/coaches",
            ],
            refused: &[
                "",
                "login.example.com",
                "http://login.example.com",
                "https://login.example.com/?a=b",
                "https://",
            ],
        },
    ),
    (
        "SettingsAudience",
        Examples { taken: &["settings", "https://api.example.com"], refused: &["", " ", "settings "] },
    ),
    (
        "SettingsCoachClaim",
        Examples { taken: &["sub", "https://example.com/coach"], refused: &["", "coach id", "sub "] },
    ),
    (
        "SettingsPageOrigin",
        Examples {
            taken: &[
                "https://app.example.com",
                "https://app.example.com:8443",
                "https://app.example.com:44",
                "https://app.example.com:4430",
                "http://localhost:3000",
                "http://127.0.0.1:8080",
                "http://[::1]:8080",
            ],
            refused: &[
                "",
                "*",
                "null",
                "app.example.com",
                "http://app.example",
                "http://app.example.com:8080",
                "http://localhost.example.com",
                "http://localhost:80",
                "https://app.example.com/",
                "https://app.example.com:443",
                "https://App.example.com",
                "https://app.example.com ",
                "https://*.example.com",
                "https://.example.com",
                "https://bücher.example",
            ],
        },
    ),
    (
        "AssertionIssuer",
        Examples {
            taken: &["https://api.example.com", "https://api.example.com:8443"],
            refused: &[
                "",
                "api.example.com",
                "http://api.example.com",
                "https://api.example.com/",
                "https://API.example.com",
            ],
        },
    ),
    (
        "MailFrom",
        Examples {
            taken: &["coach@example.com", "no-reply+coaching@mail.example.co.uk"],
            refused: &[
                "",
                "example.com",
                "Coach <coach@example.com>",
                "coach@example",
                "jörg@example.com",
                "a@bücher.example",
            ],
        },
    ),
    (
        "McpOrigins",
        Examples {
            taken: &["", "https://app.example.com", "https://a.example,vscode-webview://b", "http://localhost:6274"],
            refused: &["app.example.com", "https://a.example, https://b.example", "https://a.example/", "*"],
        },
    ),
    (
        "DomainName",
        Examples {
            taken: &["", "api.example.com"],
            refused: &[
                "https://api.example.com",
                "api.example.com/",
                "api.example.com.",
                "API.example.com",
                "api",
                "*.example.com",
            ],
        },
    ),
    (
        "CertificateArn",
        Examples { taken: &["", CERTIFICATE], refused: &["12345678-1234-1234-1234-123456789012", TOPIC] },
    ),
    (
        "HostedZoneId",
        Examples { taken: &["", "Z0123456789ABC"], refused: &["/hostedzone/Z0123456789ABC", "example.com"] },
    ),
    (
        "DeliverSubnetIds",
        Examples {
            taken: &["", "subnet-0a1b2c3d", "subnet-0123456789abcdef0,subnet-0123456789abcdef1"],
            refused: &["sg-0123456789abcdef0", "subnet-0a1b2c3d, subnet-0a1b2c3e", "subnet-0a1b2c3d,", "subnet-"],
        },
    ),
    (
        "DeliverSecurityGroupIds",
        Examples {
            taken: &["", "sg-0a1b2c3d", "sg-0123456789abcdef0,sg-0123456789abcdef1"],
            refused: &["subnet-0123456789abcdef0", "sg-0a1b2c3d, sg-0a1b2c3e", "default"],
        },
    ),
    (
        "WebhookAddresses",
        Examples {
            taken: &["", "203.0.113.7", "203.0.113.7,198.51.100.0/24,2001:db8::7,2001:db8:12::/48,::/0"],
            refused: &["hooks.example.com", "203.0.113", "203.0.113.7, 203.0.113.8", "203.0.113.7,", "203.0.113.7/"],
        },
    ),
    ("AlarmTopicArn", Examples { taken: &["", TOPIC], refused: &["alarms", CERTIFICATE, "ops@example.com"] }),
];

#[test]
fn every_text_parameter_refuses_what_cannot_work_with_its_rule() {
    let template = template();
    let examples: BTreeMap<&str, &Examples> = EXAMPLES.iter().map(|(name, examples)| (*name, examples)).collect();
    let mut checked = 0;
    for (name, parameter) in template["Parameters"].as_object().unwrap() {
        if parameter["Type"] != "String" || parameter["AllowedValues"].is_array() {
            continue;
        }
        let pattern = parameter["AllowedPattern"].as_str().unwrap_or_else(|| panic!("{name} takes any text"));
        assert!(parameter["ConstraintDescription"].is_string(), "{name} does not say its rule");
        let whole = Regex::new(&format!("^(?:{pattern})$")).unwrap();
        let examples = examples.get(name.as_str()).unwrap_or_else(|| panic!("{name} has no examples here"));
        let default = parameter["Default"].as_str();
        for value in examples.taken.iter().copied().chain(default) {
            assert!(whole.is_match(value), "{name} refuses {value:?}");
        }
        for value in examples.refused {
            assert!(!whole.is_match(value), "{name} takes {value:?}");
        }
        checked += 1;
    }
    assert_eq!(checked, EXAMPLES.len());
}

#[test]
fn a_domain_without_a_certificate_and_a_subnet_without_a_security_group_are_refused() {
    let template = template();
    for (rule, names) in [
        ("DomainHasCertificate", &["DomainName", "CertificateArn", "HostedZoneId"][..]),
        ("VpcHasSecurityGroups", &["DeliverSubnetIds", "DeliverSecurityGroupIds"]),
    ] {
        let assertion = &template["Rules"][rule]["Assertions"][0];
        let (named, description) = (assertion["Assert"].to_string(), assertion["AssertDescription"].as_str().unwrap());
        for name in names {
            assert!(named.contains(name) && description.contains(name), "{rule}: {name}");
        }
    }
}
