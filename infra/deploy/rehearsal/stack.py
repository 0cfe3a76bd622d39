"""The stack: a copy of the template with the zips, `sam deploy`, and checks of the created resources."""

import json
import re
import subprocess
import time
from pathlib import Path

from cloud import REGION
from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

NAME = "partner-api"
# Seconds between two lines about a command that still runs.
LINE_EVERY_S = 15
PARAMETERS = {
    "SettingsIssuer": "https://app.example.com",
    "SettingsAudience": "settings",
    "SettingsPageOrigin": "https://app.example.com",
    "AssertionIssuer": "https://api.example.com",
    "MailFrom": "coach@example.com",
}


def statements(policy):
    """Returns the statements of a policy, in each mode."""
    given = policy.get("Statement", [])
    return [statement for branch in given["Fn::If"][1:] for statement in branch] if isinstance(given, dict) else given


class Stack:
    def __init__(self, cloud, folder, architecture, zips, mode):
        self.cloud = cloud
        self.folder = folder
        self.mode = mode
        self.parameters = PARAMETERS | {"Architecture": architecture, "Mode": mode}
        self.workarounds = []
        self.template = folder / "template.json"
        self.nested = folder / "observability.json"
        text = Path("template.yaml").read_text()
        # A deploy without `sam build` does the same: see infra/guides/deploying.md.
        text = re.sub(r"CodeUri: functions/(.*)", rf"CodeUri: {zips}/\1/bootstrap.zip", text)
        self.document = yaml_parse(text)
        observability = self.document["Resources"]["Observability"]["Properties"]
        alarms = yaml_parse(Path(observability["TemplateURL"]).read_text())
        observability["TemplateURL"] = self.nested.name
        self.work_around(alarms)
        self.template.write_text(json.dumps(self.document, indent=1))
        self.nested.write_text(json.dumps(alarms, indent=1))

    def work_around(self, alarms):
        """Replaces constructs in the copies that the emulator does not support."""
        resources = self.document["Resources"]
        secrets = {name for name, resource in resources.items() if resource["Type"] == "AWS::SecretsManager::Secret"}
        math, listed = [], []
        for name, resource in alarms["Resources"].items():
            properties = resource["Properties"]
            if resource["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in properties:
                first = next(entry["MetricStat"] for entry in properties.pop("Metrics") if "MetricStat" in entry)
                properties.update(first["Metric"], Period=first["Period"], Statistic=first["Stat"])
                math.append(name)
        for name, resource in resources.items():
            properties = resource["Properties"]
            documents = [*properties.get("Policies", []), properties.get("PolicyDocument", {})]
            for policy in documents:
                for statement in statements(policy):
                    if statement.get("Condition", {}).pop("Null", None):
                        listed.append(name)
                    resource = statement.get("Resource")
                    secret = resource.get("Ref") if isinstance(resource, dict) else None
                    if secret in secrets:
                        arn = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${" + secret + "}*"
                        statement["Resource"] = {"Fn::Sub": arn}
        if math:
            self.workarounds.append(f"{', '.join(math)} watch one metric in place of an expression, which ministack lacks")
        if listed:
            self.workarounds.append(f"{', '.join(listed)} may put events without a source, since ministack does not know the key")
        if secrets:
            self.workarounds.append("policies name secrets by ARNs spelled out, since ministack's Ref of a secret is its name")

    def deploy(self, template=None, **parameters):
        """Creates or updates the stack."""
        given = self.parameters | parameters
        command = [self.folder / "tools/bin/sam", "deploy", "--template-file", template or self.template, "--stack-name", NAME]
        command += ["--resolve-s3", "--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-progressbar"]
        command += ["--parameter-overrides", *(f"{name}={value}" for name, value in given.items())]
        self.run_sam(command)
        return f"{len(self.resources())} resources"

    def run_sam(self, command):
        """Runs a command of sam. Its output goes to a log. Lines on the terminal show that it still runs."""
        log, began = self.folder / "deploy.log", time.monotonic()
        with log.open("a") as output:
            running = subprocess.Popen(command, cwd=self.folder, env=self.cloud.environment, stdout=output, stderr=output)
            while True:
                try:
                    status = running.wait(LINE_EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    print(f"        {time.monotonic() - began:5.0f} s  sam {command[1]} runs, its log is {log}", flush=True)
        assert status == 0, f"sam {command[1]} failed: see {log}"

    def upgrade(self):
        """Upgrades with a packaged template, as in the guide to upgrading, which needs it for a rollback."""
        before = self.outputs()
        releases = self.folder / "releases"
        releases.mkdir(exist_ok=True)
        release, sam = releases / "release.yaml", self.folder / "tools/bin/sam"
        package = [sam, "package", "--resolve-s3", "--template-file", self.template, "--output-template-file", release]
        deploy = [sam, "deploy", "--template-file", release, "--stack-name", NAME, "--resolve-s3", "--capabilities", "CAPABILITY_IAM"]
        self.run_sam(package)
        # sam recognizes the nested stack's template by S3's address, which the emulator accepts for its own.
        release.write_text(release.read_text().replace(self.cloud.url, f"https://s3.{REGION}.amazonaws.com"))
        self.run_sam([*deploy, "--no-confirm-changeset", "--no-fail-on-empty-changeset"])
        assert self.outputs() == before
        self.functions()
        return f"{release.stat().st_size:,} bytes"

    def gradually(self):
        """Deploys the packaged release with the other setting of `GradualDeployment`, as SAM transforms it.

        The emulator has no CodeDeploy. Its resources are checked in the transformed template, and left out.
        """
        preference = "Canary10Percent5Minutes"
        document = yaml_parse((self.folder / "releases/release.yaml").read_text())
        defaults = {name: parameter.get("Default", "") for name, parameter in document["Parameters"].items()}
        given = defaults | self.parameters | {"GradualDeployment": preference}
        resources = Translator({}, Parser(), boto_session=self.cloud.session()).translate(document, given)["Resources"]
        left_out = {name for name, resource in resources.items() if resource["Type"].startswith("AWS::CodeDeploy::")}
        aliases = [resource for resource in resources.values() if resource["Type"] == "AWS::Lambda::Alias"]
        for alias in aliases:
            update = alias.pop("UpdatePolicy")["CodeDeployLambdaAliasUpdate"]
            group = resources[update["DeploymentGroupName"]["Ref"]]["Properties"]
            assert group["AutoRollbackConfiguration"]["Enabled"], group
            assert preference in json.dumps(group["DeploymentConfigName"]), group
            alarm = group["AlarmConfiguration"]["Fn::If"][1]["Alarms"][0]["Name"]["Ref"]
            dimensions = {each["Name"]: each["Value"] for each in resources[alarm]["Properties"]["Dimensions"]}
            assert dimensions["FunctionName"] == alias["Properties"]["FunctionName"], alarm
        document["Resources"] = {name: resource for name, resource in resources.items() if name not in left_out}
        document.pop("Transform")
        transformed = self.folder / "releases/gradual.yaml"
        transformed.write_text(json.dumps(document))
        self.deploy(transformed, GradualDeployment=preference)
        watched = {alarm["AlarmName"] for alarm in self.cloud.client("cloudwatch").describe_alarms(AlarmNamePrefix=NAME)["MetricAlarms"]}
        watched = {name for name in watched if name.endswith("-release")}
        # The function of a sandbox has no alarm here.
        assert len(watched) == len(aliases) - 1, (watched, len(aliases))
        self.workarounds.append("the gradual setting is deployed without CodeDeploy, which ministack lacks")
        return f"{len(aliases)} aliases, {len(watched)} alarms"

    def resources(self):
        """Returns physical ids by logical ids."""
        pages = self.cloud.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=NAME)
        summaries = (summary for page in pages for summary in page["StackResourceSummaries"])
        return {summary["LogicalResourceId"]: summary["PhysicalResourceId"] for summary in summaries}

    def outputs(self):
        stack = self.cloud.client("cloudformation").describe_stacks(StackName=NAME)["Stacks"][0]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    def of_type(self, kind):
        """Returns physical ids of the template's resources of a type by logical ids."""
        made = self.resources()
        return {name: made[name] for name, resource in self.document["Resources"].items() if resource["Type"] == kind and name in made}

    def checks(self):
        """Steps that check the created resources."""
        yield "tables have deletion protection and on-demand billing", self.tables
        yield "functions have their architecture, time-out and log group", self.functions
        yield "queues are encrypted and retain messages longer than their visibility time-out", self.queues
        yield "log groups have a retention", self.log_groups
        yield "a sandbox alone has what belongs to a sandbox", self.sandbox

    def sandbox(self):
        own = {name for name, resource in self.document["Resources"].items() if resource.get("Condition") == "IsSandbox"}
        made = own & self.resources().keys()
        assert made == (own if self.mode == "test" else set()), made
        return f"{len(made)} resources"

    def tables(self):
        dynamodb = self.cloud.client("dynamodb")
        tables = self.of_type("AWS::DynamoDB::Table")
        for table in tables.values():
            described = dynamodb.describe_table(TableName=table)["Table"]
            assert described["DeletionProtectionEnabled"], table
            assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST", table
        return f"{len(tables)} tables"

    def functions(self):
        functions = self.of_type("AWS::Serverless::Function")
        for name, function in functions.items():
            configuration = self.cloud.client("lambda").get_function_configuration(FunctionName=function)
            assert configuration["Architectures"] == [self.parameters["Architecture"]], name
            assert configuration["LoggingConfig"]["LogGroup"].startswith(f"/aws/lambda/{NAME}/"), name
            timeout_s = self.document["Resources"][name]["Properties"].get("Timeout")
            assert timeout_s in (None, configuration["Timeout"]), name
        return f"{len(functions)} functions"

    def queues(self):
        sqs = self.cloud.client("sqs")
        queues = self.of_type("AWS::SQS::Queue")
        for queue in queues.values():
            attributes = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
            assert attributes["SqsManagedSseEnabled"] == "true", queue
            assert int(attributes["MessageRetentionPeriod"]) > int(attributes["VisibilityTimeout"]), queue
        return f"{len(queues)} queues"

    def log_groups(self):
        groups = self.cloud.client("logs").describe_log_groups()["logGroups"]
        made = set(self.of_type("AWS::Logs::LogGroup").values())
        kept = {group["logGroupName"]: group.get("retentionInDays") for group in groups if group["logGroupName"] in made}
        assert len(kept) == len(made) and set(kept.values()) == {30}, kept
        return f"{len(kept)} groups, 30 days"

    def changes(self):
        """Steps that update and delete the stack."""
        yield "a packaged release is deployed with the previous parameters", self.upgrade
        yield "the same release is deployed gradually, with an alarm on each new version", self.gradually
        yield "a deploy all at once adds the custom domain and the alarms' topic", self.give_domain
        yield "deleting the stack leaves every table and secret", self.delete

    def give_domain(self):
        zone = self.cloud.client("route53").create_hosted_zone(Name="example.com", CallerReference="rehearsal")
        certificate = self.cloud.client("acm").request_certificate(DomainName="api.example.com")["CertificateArn"]
        topic = self.cloud.client("sns").create_topic(Name="alarms")["TopicArn"]
        zone_id = zone["HostedZone"]["Id"].removeprefix("/hostedzone/")
        domain = {"DomainName": "api.example.com", "CertificateArn": certificate, "HostedZoneId": zone_id}
        # Without a value, the stack would keep that of the gradual deployment.
        self.deploy(**domain, AlarmTopicArn=topic, GradualDeployment="AllAtOnce")
        records = self.cloud.client("route53").list_resource_record_sets(HostedZoneId=zone_id)["ResourceRecordSets"]
        target = self.outputs()["CustomDomainTarget"]
        aliases = [record["AliasTarget"]["DNSName"].rstrip(".") for record in records if "AliasTarget" in record]
        assert aliases == [target], (aliases, target)
        alarms = self.cloud.client("cloudwatch").describe_alarms()["MetricAlarms"]
        without = [alarm["AlarmName"] for alarm in alarms if alarm["AlarmActions"] != [topic]]
        assert alarms and not without, without
        return f"{self.outputs()['CustomDomainUrl']} is an alias of {target}, {len(alarms)} alarms"

    def delete(self):
        tables = set(self.of_type("AWS::DynamoDB::Table").values())
        cloudformation = self.cloud.client("cloudformation")
        cloudformation.delete_stack(StackName=NAME)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=NAME, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
        left = set(self.cloud.client("dynamodb").list_tables()["TableNames"])
        assert tables <= left, tables - left
        secrets = self.cloud.client("secretsmanager").list_secrets()["SecretList"]
        assert len(secrets) == 2, secrets
        return f"{len(tables)} tables, {len(secrets)} secrets"
