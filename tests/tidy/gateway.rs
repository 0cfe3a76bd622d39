//! The gateway of template.yaml: throttles, access log and domain.

use std::collections::BTreeSet;

use compare::assert_same;
use edge::routes::{Access, ROUTES, Route};
use local_stack::template::document;
use serde_json::{Value, json};

use crate::tidy::observability::observability;
use crate::tidy::template::{
    arrives_unrouted, functions, is_anonymous, is_for_assistants, is_head_of_page, of_type, reservation, route_keys,
    template,
};

/// Concurrency that anonymous callers leave to the keyed routes of their function.
const LEFT_TO_KEYS: u64 = 20;
/// Requests a second that Lambda lets one concurrent invocation take, however short they are.
const REQUESTS_AT_ONCE: u64 = 10;
/// Requests a second of one caller that must not use up what all callers share.
const ONE_CALLER: u64 = 50;
/// Routes with large answers, which are throttled lower than [`ONE_CALLER`] would ask for.
const LARGE: &str = "DocsRateLimit";
/// Variables of the access log, none of which a caller controls.
const LOGGED: [&str; 10] = [
    "apiId",
    "error.responseType",
    "identity.sourceIp",
    "integrationLatency",
    "integrationStatus",
    "requestId",
    "responseLatency",
    "responseLength",
    "routeKey",
    "status",
];

/// A limit of an anonymous route, with the name of its parameter.
fn limit<'t>(template: &'t Value, key: &str, limit: &str) -> (&'t str, u64) {
    let settings = &template["Resources"]["Api"]["Properties"]["RouteSettings"];
    let own = settings[key]["Fn::If"].get(1).unwrap_or(&settings[key]);
    let parameter = own[limit]["Ref"].as_str().unwrap_or_else(|| panic!("{key} has no {limit}"));
    (parameter, template["Parameters"][parameter]["Default"].as_u64().unwrap())
}

#[test]
fn exactly_the_anonymous_routes_are_throttled_far_below_the_api() {
    let template = template();
    let settings = template["Resources"]["Api"]["Properties"]["RouteSettings"].as_object().unwrap();
    let heads =
        functions(&template).values().flat_map(route_keys).filter(|key| is_head_of_page(key)).collect::<Vec<_>>();
    let routed = ROUTES.iter().filter(|route| !arrives_unrouted(route)).map(Route::to_string);
    let keys = routed.chain(heads).chain(["$default".to_owned()]);
    assert_same(
        "RouteSettings of Api in template.yaml",
        settings.keys(),
        keys.filter(|key| is_anonymous(key) || is_for_assistants(key)),
    );
    let default = |name: &str| template["Parameters"][name]["Default"].as_u64().unwrap();
    for key in settings.keys() {
        for (own, of_api) in [("ThrottlingRateLimit", "ApiRateLimit"), ("ThrottlingBurstLimit", "ApiBurstLimit")] {
            let (_, own) = limit(&template, key, own);
            assert!(own * 20 <= default(of_api), "{key}: {own}");
        }
    }
}

#[test]
fn one_anonymous_caller_does_not_use_up_what_all_callers_share() {
    let template = template();
    let settings = template["Resources"]["Api"]["Properties"]["RouteSettings"].as_object().unwrap();
    let anonymous = settings.keys().filter(|key| is_anonymous(key));
    let limits = anonymous.map(|key| (key, limit(&template, key, "ThrottlingRateLimit")));
    let (large, cheap): (Vec<_>, Vec<_>) = limits.partition(|(_, (parameter, _))| *parameter == LARGE);
    assert!(
        large.iter().all(|(key, _)| ["/docs", "/openapi", "/llms"].iter().any(|part| key.contains(part))),
        "{large:?}"
    );
    for (key, (parameter, rate)) in cheap {
        assert!(rate >= 6 * ONE_CALLER, "{key}: {parameter} is {rate}");
    }
}

#[test]
fn the_gateways_throttles_refuse_anonymous_callers_before_lambda_does() {
    let template = template();
    let mut mixed = Vec::new();
    for (id, function) in functions(&template) {
        let (anonymous, keyed): (Vec<String>, Vec<String>) =
            route_keys(&function).into_iter().partition(|key| is_anonymous(key));
        if anonymous.is_empty() {
            continue;
        }
        let sum = |name: &str| anonymous.iter().map(|key| limit(&template, key, name).1).sum::<u64>();
        let reserved = reservation(&id, &function);
        let sustained = sum("ThrottlingRateLimit").div_ceil(REQUESTS_AT_ONCE);
        if keyed.is_empty() {
            assert!(sustained <= reserved, "{id}: {sustained} at once");
            continue;
        }
        let at_once = sustained.max(sum("ThrottlingBurstLimit"));
        assert!(at_once + LEFT_TO_KEYS <= reserved, "{id}: {at_once} at once");
        mixed.push(id);
    }
    assert_eq!(mixed, ["LoginLinksFunction"], "every other function serves callers of one kind");
}

#[test]
fn the_api_is_throttled_and_logs_no_request_content() {
    let template = template();
    let api = &template["Resources"]["Api"]["Properties"];
    let limits =
        json!({"ThrottlingRateLimit": {"Ref": "ApiRateLimit"}, "ThrottlingBurstLimit": {"Ref": "ApiBurstLimit"}});
    assert_eq!(api["DefaultRouteSettings"], limits);
    let format = &api["AccessLogSettings"]["Format"]["Fn::Sub"];
    let caller = json!({ "Fn::If": ["LogsCallerAddress", "$context.identity.sourceIp", ""] });
    assert_eq!(format[1], json!({ "Caller": caller }));
    assert_eq!(template["Parameters"]["LogCallerAddress"]["Default"], "true");
    let without = format[0].as_str().unwrap().replace("${Caller}", "");
    assert!(!without.contains("sourceIp") && serde_json::from_str::<Value>(&filled(&without)).is_ok(), "{without}");
    let format = format[0].as_str().unwrap().replace("${Caller}", caller["Fn::If"][1].as_str().unwrap());
    let variable = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '.').collect::<String>();
    let logged: BTreeSet<String> = format.split("$context.").skip(1).map(variable).collect();
    assert_same("LOGGED here, after a review, or AccessLogSettings in template.yaml", LOGGED, logged);
    let line = filled(&format);
    assert!(serde_json::from_str::<Value>(&line).is_ok(), "{line}");
}

/// A line of the access log with a number for each variable.
fn filled(format: &str) -> String {
    LOGGED.iter().fold(format.to_owned(), |line, name| line.replace(&format!("$context.{name}"), "0"))
}

#[test]
fn throttled_requests_are_counted_from_the_fields_of_the_access_log() {
    let (template, observability) = (template(), observability());
    let filter = &observability["Resources"]["GatewayThrottledFilter"]["Properties"];
    assert_eq!(filter["LogGroupName"], json!({ "Ref": "ApiLog" }));
    assert_eq!(
        template["Resources"]["Observability"]["Properties"]["Parameters"]["ApiLog"],
        json!({ "Ref": "ApiLog" })
    );
    let log = template["Resources"]["Api"]["Properties"]["AccessLogSettings"]["Format"]["Fn::Sub"][0].as_str().unwrap();
    let pattern = filter["FilterPattern"].as_str().unwrap();
    assert_eq!(pattern, r#"{ $.status = 429 && $.integration_status = "-" }"#);
    let dimensions = filter["MetricTransformations"][0]["Dimensions"].as_array().unwrap();
    assert_eq!(dimensions, &[json!({ "Key": "api", "Value": "$.api" })], "one metric for each API");
    let fields = pattern.split("$.").skip(1).map(|rest| rest.split(' ').next().unwrap());
    for field in fields.chain(["api"]) {
        assert!(log.contains(&format!("\"{field}\":")), "{field} is not in the log");
    }
}

#[test]
fn a_custom_domain_is_created_only_if_one_is_given() {
    let template = template();
    let condition = json!({ "Fn::And": [{ "Condition": "HasDomain" }, { "Fn::Equals": [{ "Ref": "DisableDefaultEndpoint" }, "true"] }] });
    assert_eq!(template["Conditions"]["DisablesDefaultEndpoint"], condition);
    assert_eq!(template["Parameters"]["DisableDefaultEndpoint"]["Default"], "true");
    let disabled = json!({ "Fn::If": ["DisablesDefaultEndpoint", true, false] });
    assert_eq!(template["Resources"]["Api"]["Properties"]["DisableExecuteApiEndpoint"], disabled);
    for name in ["DomainName", "CertificateArn", "HostedZoneId", "AlarmTopicArn"] {
        assert_eq!(template["Parameters"][name]["Default"], "", "{name}");
    }
    let wanted = [
        ("AWS::ApiGatewayV2::DomainName", "HasDomain"),
        ("AWS::ApiGatewayV2::ApiMapping", "HasDomain"),
        ("AWS::Route53::RecordSet", "HasDomainRecord"),
    ];
    for (kind, condition) in wanted {
        for (id, resource) in of_type(&template, kind) {
            assert_eq!(resource["Condition"], condition, "{id}");
        }
    }
}

#[test]
fn cloudfront_caches_public_routes_but_no_error_and_limits_all_of_them_for_each_address() {
    let front = document(include_str!("../../infra/guides/cloudfront.yaml")).unwrap();
    let (public, others): (Vec<_>, Vec<_>) = ROUTES.iter().partition(|route| route.access == Access::Public);
    let covers = |pattern: &str, path: &str| match pattern.strip_suffix('*') {
        Some(beginning) => path.starts_with(beginning),
        None => path == pattern,
    };
    let distribution = &front["Resources"]["Distribution"]["Properties"]["DistributionConfig"];
    for behavior in distribution["CacheBehaviors"].as_array().unwrap() {
        let pattern = behavior["PathPattern"].as_str().unwrap();
        assert!(public.iter().any(|route| covers(pattern, route.path)), "{pattern} caches nothing");
        let private = others.iter().find(|route| covers(pattern, route.path)).map(|route| route.path);
        assert_eq!(private, None, "{pattern} caches answers that take a key or a session");
        // A copy of a page must not reach a caller who accepts another form.
        let is_negotiated = pattern.starts_with("/docs");
        let by_accept = behavior["CachePolicyId"] == json!({ "Ref": "CachedByAccept" });
        assert_eq!(by_accept, is_negotiated, "{pattern}");
    }
    let cached = &front["Resources"]["CachedByAccept"]["Properties"]["CachePolicyConfig"];
    let key = &cached["ParametersInCacheKeyAndForwardedToOrigin"]["HeadersConfig"];
    assert_eq!(*key, json!({ "HeaderBehavior": "whitelist", "Headers": ["Accept"] }));
    // Errors that CloudFront keeps unless told otherwise.
    let errors = [404, 414, 500, 501, 502, 503, 504].map(|code| json!({ "ErrorCode": code, "ErrorCachingMinTTL": 0 }));
    assert_eq!(distribution["CustomErrorResponses"], json!(errors));
    let rule = &front["Resources"]["Firewall"]["Properties"]["Rules"][0]["Statement"]["RateBasedStatement"];
    let spared =
        rule["ScopeDownStatement"]["NotStatement"]["Statement"]["OrStatement"]["Statements"].as_array().unwrap();
    let is_spared = |path: &str| {
        spared.iter().any(|it| path.starts_with(it["ByteMatchStatement"]["SearchString"].as_str().unwrap()))
    };
    for (routes, spares) in [(&public, false), (&others, true)] {
        for route in routes {
            assert_eq!(is_spared(route.path), spares, "{}", route.path);
        }
    }
}
