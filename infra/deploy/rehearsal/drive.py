"""Drives the deployed functions: facts, messages, requests, a delivery, a sweep."""

import json
import subprocess
import time
import uuid
from datetime import datetime, timezone

from cloud import REGION, eventually
from receiver import Receiver, is_signed
from stack import NAME

COACH = "coach_rehearsal"
FED_CLIENT = "client_fed"
# Personal data that must not be in a log.
PERSONAL = ("grace@rehearsal.example", "Grace Rehearsal", "katherine@rehearsal.example", "Katherine Rehearsal")
# Time for a retry's gap, and for one period of a one-minute schedule.
RETRY_TIMEOUT_S = 120
SCHEDULE_TIMEOUT_S = 150


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def fact(detail):
    return {"id": f"fact-{uuid.uuid4()}", "occurred_at": now()} | detail


class Drive:
    def __init__(self, cloud, stack):
        self.cloud = cloud
        self.stack = stack
        self.receiver = Receiver()
        self.made = stack.resources()

    def steps(self):
        yield "a fact on the bus reaches the tables through rule, queue and ingest", self.feed_fact
        yield "a message in the feed queue invokes ingest", self.feed_message
        yield "a signed-in coach creates a key, and the key authenticates", self.make_key
        yield "a repeated request creates one client", self.create_client
        yield "the stream invokes the relay, and the second attempt delivers a signed webhook", self.deliver
        yield "the application receives the change on the bus", self.change_published
        yield "the schedule starts a sweep, which evaluates the due client", self.sweep
        yield "relay and sweep accept the schedule's event", self.scheduled
        yield "the dead-letter queues are empty", self.dead_letters
        yield "an operator with the stack's policies looks and acts", self.operate
        yield "logs are JSON and metrics without personal data", self.logs

    def feed_fact(self):
        workspace = {
            "coach_id": COACH,
            "email": "coach@rehearsal.example",
            "name": "Rehearsal",
            "team_id": None,
            "canonical_host": "https://coach.rehearsal.example",
            "time_zone": "Europe/Berlin",
            "country": "DE",
            "plan": {"client_cap": 10},
            "entitlements": {"partner_api": True, "pro_crm": True, "gym": True},
            "crm": {"pipeline_id": "pipeline-1", "initial_stage": "new"},
        }
        entry = {"EventBusName": self.stack.outputs()["BusName"], "Source": "coaching.application"}
        entry |= {"DetailType": "workspace.saved", "Detail": json.dumps(fact(workspace))}
        # Captures the service's changes on the same bus from the beginning.
        self.capture_changes(entry["EventBusName"])
        put = self.cloud.client("events").put_events(Entries=[entry])
        assert put["FailedEntryCount"] == 0, put
        key = {"pk": {"S": f"COACH#{COACH}"}, "sk": {"S": "WORKSPACE"}}
        found = eventually("the workspace", lambda: self.item("WorkspacesTable", key))
        return f"workspace of version {found['version']['N']}"

    def feed_message(self):
        client = {
            "client_id": FED_CLIENT,
            "coach_id": COACH,
            "email": PERSONAL[2],
            "full_name": PERSONAL[3],
            "phone": None,
            "goals": None,
            "health_notes": None,
            "height_in": None,
            "weight_lbs": None,
            "is_active": True,
            "current_phase": None,
            "phase_started_on": None,
            "programme_id": None,
            "created_at": now(),
            "origin": "import",
        }
        automation = {
            "automation_id": "automation_rehearsal",
            "coach_id": COACH,
            "name": "Three days without a log",
            "active": True,
            "trigger": {"event": "daily_log_inactivity", "days": 3},
            "steps": [],
        }
        sqs = self.cloud.client("sqs")
        for name, detail in (("client.saved", client), ("automation.saved", automation)):
            body = {"detail-type": name, "source": "coaching.application", "detail": fact(detail)}
            sqs.send_message(QueueUrl=self.made["ApplicationFeedQueue"], MessageBody=json.dumps(body))
        eventually("the client", lambda: self.item("ClientsTable", {"pk": {"S": f"CLIENT#{FED_CLIENT}"}}))
        return f"{FED_CLIENT} is stored"

    def operate(self):
        """Runs the operators' command as a user with the managed policies, which the emulator enforces."""
        iam, outputs = self.cloud.client("iam"), self.stack.outputs()
        iam.create_user(UserName="oncall")
        keys = iam.create_access_key(UserName="oncall")["AccessKey"]
        names = {"AWS_ACCESS_KEY_ID": keys["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"], "AWS_REGION": REGION}

        def run(*arguments):
            command = ["target/debug/operate", "--stack", NAME, "--json", *arguments]
            ran = subprocess.run(command, env=self.cloud.environment | names, capture_output=True, text=True, timeout=120)
            assert not any(text in ran.stdout + ran.stderr for text in PERSONAL), ran
            return ran.returncode, json.loads(ran.stdout)

        denied = run("feed")
        assert denied[0] == 1 and denied[1]["code"] == "refused", denied
        iam.attach_user_policy(UserName="oncall", PolicyArn=outputs["OperatorReadPolicyArn"])
        feed, coach, found = run("feed"), run("coach", COACH), run("find", self.key[-4:])
        assert (feed[0], coach[0], found[0]) == (0, 0, 0), (feed, coach, found)
        assert len(feed[1]["queues"]) >= 6 and coach[1]["keys"] == {"live": 1}, (feed, coach)
        key = found[1]["matches"][0]["id"]
        timeline = run("client", FED_CLIENT, "--timeline")
        dead = run("dead", "list")
        assert (timeline[0], dead) == (0, (0, {"dead": [], "complete": True})), (timeline, dead)
        revoke = ("key", "revoke", key, "--reason", "rehearsal", "--yes")
        denied = run(*revoke)
        assert denied[0] == 1 and denied[1]["code"] == "refused", denied
        iam.attach_user_policy(UserName="oncall", PolicyArn=outputs["OperatorActPolicyArn"])
        revoked = run(*revoke)
        assert revoked[1] == {"done": "key.revoked", "target": key, "coach_id": COACH, "changed": True}, revoked
        assert self.request("PingFunction", "GET", "/v1/ping", key=self.key)[0] == 401
        trail = self.request("SettingsFunction", "GET", "/settings/audit", coach=COACH)[1]["data"]
        assert trail[0]["actor"] == "operator:user/oncall", trail[0]
        return f"{len(feed[1]['queues'])} queues, one key revoked"

    def make_key(self):
        made = self.request("SettingsFunction", "POST", "/settings/keys", {"name": "Rehearsal", "scope": "partner"}, coach=COACH)
        assert made[0] == 201, made
        self.key = made[1]["key"]
        accepted = self.request("PingFunction", "GET", "/v1/ping", key=self.key)
        mistyped = self.key[:-1] + ("y" if self.key.endswith("x") else "x")
        rejected = self.request("PingFunction", "GET", "/v1/ping", key=mistyped)
        assert (accepted[0], rejected[0]) == (200, 401), (accepted, rejected)
        # The address of the stack is no address here, so the function says that the service does not answer.
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        rejected = self.request("McpFunction", "POST", "/mcp", listing, key=mistyped)
        unanswered = self.request("McpFunction", "POST", "/mcp", listing, key=self.key)
        assert (rejected[0], unanswered[0]) == (401, 503), (rejected, unanswered)
        webhook = {"url": self.receiver.url, "events": ["new_client"], "payload_mode": "identifiers"}
        made = self.request("SettingsFunction", "POST", "/settings/webhooks", webhook, coach=COACH)
        assert made[0] == 201, made
        self.endpoint = made[1]
        return "201, 200, and 401 for another key"

    def create_client(self):
        draft = {"email": PERSONAL[0], "full_name": PERSONAL[1], "send_welcome": False}
        headers = {"idempotency-key": f"rehearsal-{uuid.uuid4()}"}
        first, again = (self.request("ClientsFunction", "POST", "/v1/clients", draft, headers, self.key) for _ in range(2))
        assert first[0] == again[0] == 201 and first[1] == again[1], (first, again)
        assert again[2].get("idempotent-replay") == "true", again[2]
        self.client_id = first[1]["client_id"]
        return "201, and the same answer again"

    def deliver(self):
        requests = self.receiver.requests
        eventually("the delivery's second attempt", lambda: len(requests) > 1, RETRY_TIMEOUT_S)
        assert all(is_signed(*request, self.endpoint["secret"]) for request in requests)
        (first, _), (second, body) = requests[:2]
        assert first["webhook-id"] == second["webhook-id"] and json.loads(body)["type"] == "new_client", body
        path, route = f"/settings/webhooks/{self.endpoint['id']}/deliveries", "GET /settings/webhooks/{id}/deliveries"

        def logged():
            listed = self.request("SettingsFunction", "GET", path, coach=COACH, route=route, parameters={"id": self.endpoint["id"]})
            return [entry["status"] for entry in listed[1]["data"]] == ["delivered"]

        eventually("the log's entry", logged)
        return f"{len(requests)} attempts under one id, the first answered 500"

    def change_published(self):
        def read():
            received = self.cloud.client("sqs").receive_message(QueueUrl=self.changes_queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            events = [json.loads(message["Body"]) for message in received.get("Messages", [])]
            return [event for event in events if event["detail-type"] == "client.created"]

        published = eventually("client.created", read)
        assert published[0]["detail"]["client"]["client_id"] == self.client_id, published
        return "client.created"

    def sweep(self):
        # A new automation and a new client are due within a minute.
        waiting = eventually("due clients", self.due)
        rules = self.cloud.client("events")
        target = self.function_arn("SweepFunction")
        (rule,) = rules.list_rule_names_by_target(TargetArn=target)["RuleNames"]
        # The period of a quarter of an hour is too long for the rehearsal.
        rules.put_rule(Name=rule, ScheduleExpression="rate(1 minute)", State="ENABLED")
        eventually("no due clients", lambda: not self.due(), SCHEDULE_TIMEOUT_S)
        return f"{len(waiting)} entries of the due index"

    def scheduled(self):
        for function in ("RelayFunction", "SweepFunction"):
            self.schedule(function)

    def schedule(self, function):
        """Invokes a function as its schedule does."""
        event = {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "account": "000000000000",
            "time": now(),
            "region": REGION,
            "resources": [f"arn:aws:events:{REGION}:000000000000:rule/{self.stack.outputs()['BusName']}"],
            "detail": {},
        }
        self.invoke(function, event)

    def dead_letters(self):
        for queue in ("ApplicationFeedDeadLetters", "DeliveriesDeadLetters"):
            asked = {"QueueUrl": self.made[queue], "AttributeNames": ["ApproximateNumberOfMessages"]}
            count = self.cloud.client("sqs").get_queue_attributes(**asked)["Attributes"]["ApproximateNumberOfMessages"]
            assert count == "0", f"{queue}: {count}"

    def logs(self):
        logs = self.cloud.client("logs")
        lines = []
        for group in self.stack.of_type("AWS::Logs::LogGroup").values():
            lines += [event["message"].strip() for event in logs.filter_log_events(logGroupName=group)["events"]]
        own = [line for line in lines if line and not line.startswith(("START ", "END ", "REPORT ", "INIT_START "))]
        metrics = [line for line in own if "_aws" in json.loads(line)]
        assert metrics, own[:5]
        secrets = (self.key, self.endpoint["secret"])
        found = [word for word in (*PERSONAL, *secrets) if any(word in line for line in own)]
        assert not found, found
        return f"{len(own)} lines, {len(metrics)} of them metrics"

    def capture_changes(self, bus):
        """Creates a queue that receives the service's changes."""
        sqs, events = self.cloud.client("sqs"), self.cloud.client("events")
        self.changes_queue = sqs.create_queue(QueueName="rehearsal-changes")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=self.changes_queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        statement = {"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": arn}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        sqs.set_queue_attributes(QueueUrl=self.changes_queue, Attributes={"Policy": policy})
        events.put_rule(Name="changes", EventBusName=bus, EventPattern=json.dumps({"source": ["partner-api"]}))
        events.put_targets(Rule="changes", EventBusName=bus, Targets=[{"Id": "changes", "Arn": arn}])

    def item(self, table, key):
        return self.cloud.client("dynamodb").get_item(TableName=self.made[table], Key=key).get("Item")

    def due(self):
        """Returns the due entries of the due index."""
        scanned = self.cloud.client("dynamodb").scan(TableName=self.made["RecordsTable"], IndexName="due")["Items"]
        return [item for item in scanned if int(item["sweep_due_at"]["N"]) <= time.time() * 1000]

    def function_arn(self, function):
        return self.cloud.client("lambda").get_function_configuration(FunctionName=self.made[function])["FunctionArn"]

    def invoke(self, function, event):
        answer = self.cloud.client("lambda").invoke(FunctionName=self.made[function], Payload=json.dumps(event))
        payload = json.load(answer["Payload"])
        assert "FunctionError" not in answer, payload
        return payload

    def request(self, function, method, path, body=None, headers=None, key=None, coach=None, route=None, parameters=None):
        """Invokes a function with API Gateway's event and returns status, JSON and headers of the response."""
        headers = {"host": "api.example.com", "content-type": "application/json"} | (headers or {})
        if key:
            headers["authorization"] = f"Bearer {key}"
        route = route or f"{method} {path}"
        context = {
            "accountId": "000000000000",
            "apiId": "rehearsal",
            "domainName": "api.example.com",
            "domainPrefix": "api",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "rehearsal"},
            "requestId": str(uuid.uuid4()),
            "routeKey": route,
            "stage": "$default",
            "time": datetime.now(timezone.utc).strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "timeEpoch": int(time.time() * 1000),
        }
        if coach:
            context["authorizer"] = {"jwt": {"claims": {"sub": coach}, "scopes": None}}
        event = {"version": "2.0", "routeKey": route, "rawPath": path, "rawQueryString": "", "headers": headers}
        event |= {"requestContext": context, "isBase64Encoded": False}
        if parameters:
            event["pathParameters"] = parameters
        if body is not None:
            event["body"] = json.dumps(body)
        answer = self.invoke(function, event)
        return answer["statusCode"], json.loads(answer["body"] or "null"), answer.get("headers", {})
