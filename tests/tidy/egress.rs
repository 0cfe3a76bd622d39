//! The way of webhooks out of AWS in template.yaml.

use serde_json::{Value, json};

use crate::tidy::template::{each, functions, template};

#[test]
fn webhooks_are_sent_from_a_vpc_only_by_choice_and_the_code_may_not_use_ec2() {
    let template = template();
    for (id, function) in functions(&template) {
        let own = &function["Properties"];
        if id != "DeliverFunction" {
            assert!(own["VpcConfig"].is_null(), "{id} needs no fixed address");
            continue;
        }
        let [subnets, groups] = ["DeliverSubnetIds", "DeliverSecurityGroupIds"].map(|name| {
            assert_eq!(template["Parameters"][name]["Default"], "", "{name}");
            json!({ "Fn::Split": [",", { "Ref": name }] })
        });
        let vpc = json!({ "SubnetIds": subnets, "SecurityGroupIds": groups });
        assert_eq!(own["VpcConfig"], json!({ "Fn::If": ["DeliversFromVpc", vpc, { "Ref": "AWS::NoValue" }] }));
        let statements = each(&own["Policies"]).iter().flat_map(|policy| each(&policy["Statement"]));
        let of_ec2: Vec<&Value> = statements.filter(|it| it["Action"] == "ec2:*").collect();
        // The policy cannot refer to the function, whose role it is for.
        let arn = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-deliver";
        assert_eq!(own["FunctionName"]["Fn::Sub"], arn.split(":function:").nth(1).unwrap());
        let condition = json!({ "ArnEquals": { "lambda:SourceFunctionArn": { "Fn::Sub": arn } } });
        let denial = json!({ "Effect": "Deny", "Action": "ec2:*", "Resource": "*", "Condition": condition });
        assert_eq!(of_ec2, [&denial]);
    }
}
