"""The request log against what real clients sent and saw.

A script makes a `RequestLog` of its coach, and sends requests with its keys and its words. It compares each answer with
its record by `shows`, and ends with `check`.
"""

import collections
import copy
import dataclasses
import hashlib
import json
import secrets
import urllib.parse

from local_stack import call

TABLE = "partner-api-requests"
RECORD = {"id", "at", "key_id", "method", "route", "target", "status", "code", "replayed", "duration_ms"}
RECORD |= {"idempotency_key_sha256", "tool", "client", "user_agent", "parameters"}
HASH_DIGITS = 12
USER_AGENT_CHARS = 120
CRM_PERMISSIONS = ["contacts.read", "contacts.write", "bookings.read", "bookings.write"]


@dataclasses.dataclass(frozen=True)
class Key:
    """An API key. The log shows the records of a revoked key to the coach alone."""

    id: str
    secret: str
    is_revoked: bool = False


@dataclasses.dataclass
class Exchange:
    """A request as a client sent it, and the answer as the client saw it. Bodies are texts."""

    method: str
    url: str
    sent: dict
    body: str | None
    status: int
    headers: dict
    answer: str

    def __post_init__(self):
        self.sent = {name.lower(): value for name, value in self.sent.items()}
        self.headers = {name.lower(): value for name, value in self.headers.items()}

    @property
    def code(self):
        return json.loads(self.answer)["code"] if self.status >= 400 else None

    @property
    def request_id(self):
        return self.headers["x-request-id"]

    @property
    def path(self):
        return urllib.parse.urlsplit(self.url).path

    @property
    def replayed(self):
        return self.headers.get("idempotent-replay") == "true"

    def record(self):
        """The fields of its record that follow from what the client sent and saw."""
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.url).query, keep_blank_values=True)
        fields = {"method": self.method, "status": self.status, "code": self.code, "parameters": sorted(query)}
        fields["idempotency_key_sha256"] = digits(self.sent.get("idempotency-key"))
        fields["replayed"] = self.replayed
        if "user-agent" in self.sent:
            fields["user_agent"] = self.sent["user-agent"][:USER_AGENT_CHARS]
        return fields | {"tool": None, "client": None, "target": None}


def digits(idempotency_key):
    """The digits by which a record names an idempotency key."""
    return idempotency_key and hashlib.sha256(idempotency_key.encode()).hexdigest()[:HASH_DIGITS]


class RequestLog:
    """The request log of a coach, the records that it has to have, and the private values that were sent."""

    def __init__(self, base_url, aws_url, bearer):
        self.base_url, self.aws_url, self.bearer = base_url, aws_url, bearer
        self.keys, self.words, self.idempotency_keys, self.answers, self.sent = [], [], [], [], ""
        # For each key's id the records that were compared, oldest first.
        self.shown = collections.defaultdict(list)

    def settings(self, path, body=None, method=None, **query):
        query = "?" + urllib.parse.urlencode(query) if query else ""
        return call(f"{self.base_url}/settings/{path}{query}", body, method, authorization=self.bearer)

    def key(self, scope):
        """Makes a key that nobody else uses, so that the log has all its requests."""
        events = {"types": ["new_client"], "payload_mode": "identifiers"}
        wanted = {"name": f"Mistakes {scope}", "scope": scope, "events": events}
        made = self.settings("keys", wanted | {"permissions": CRM_PERMISSIONS if scope == "crm" else None})
        self.keys.append(Key(made["id"], made["key"]))
        return self.keys[-1]

    def revoked_key(self):
        """Makes a partner key that is revoked. The log keeps its first request of a minute."""
        revoked = dataclasses.replace(self.key("partner"), is_revoked=True)
        self.settings(f"keys/{revoked.id}", method="DELETE")
        self.keys[-1] = revoked
        return revoked

    def word(self):
        """Draws a word that occurs nowhere else. A client sends it as a value, so the log may not have it."""
        self.words.append(f"zq{secrets.token_hex(5)}")
        return self.words[-1]

    def note(self, text, idempotency_key=None):
        """Notes what a client sent: there the words have to be, and its idempotency key is private, too."""
        self.sent += text
        self.idempotency_keys += [idempotency_key] if idempotency_key else []

    def records(self, key, **filters):
        """The key's records, newest first, read with the key, or by the coach if it is revoked."""
        pages, cursor = [], {}
        while not pages or pages[-1]["next_cursor"]:
            if key.is_revoked:
                pages.append(self.settings("requests", key_id=key.id, **filters, **cursor))
            else:
                query = urllib.parse.urlencode(filters | cursor)
                pages.append(call(f"{self.base_url}/v1/requests?{query}", x_api_key=key.secret))
            cursor = {"cursor": pages[-1]["next_cursor"]}
        self.answers += pages
        return [record for page in pages for record in page["data"]]

    def has(self, key, request_id, **expected):
        """Asserts that the log has exactly one record under this id, with these fields. Returns the record."""
        found = self.records(key, request_id=request_id)
        assert len(found) == 1, f"{len(found)} records of {request_id}, expected {expected}"
        [record] = found
        compare(record, {"id": request_id, "key_id": key.id} | expected)
        assert record.keys() == RECORD and record["duration_ms"] >= 0 and record["at"].endswith("Z"), record
        return record

    def shows(self, key, exchange, route, status, code=None, **expected):
        """Asserts that the client saw this status and code, and that the log shows the same request and answer."""
        self.note(f"{exchange.url} {exchange.sent} {exchange.body}", exchange.sent.get("idempotency-key"))
        assert (exchange.status, exchange.code) == (status, code), f"the client saw {exchange}"
        record = self.has(key, exchange.request_id, route=route, **exchange.record() | expected)
        assert record["user_agent"], f"no user agent: {record}"
        self.shown[key.id].append(record)
        return record

    def shows_tool(self, key, request_id, **expected):
        """Asserts that the log shows the request that a tool made."""
        self.shown[key.id].append(self.has(key, request_id, **expected))

    def check(self, what):
        """Checks the lists, the summary and privacy, and that these checks can fail."""
        for key in self.keys:
            self.check_list(key)
        self.check_summary()
        self.check_privacy()
        self.check_that_checks_fail()
        print(f"request log: {what}: {sum(map(len, self.shown.values()))} records as the client saw them", flush=True)

    def check_list(self, key):
        """Checks that exactly the compared records are listed: no successful read, and the same for the coach."""
        listed = self.records(key)
        ids = [record["id"] for record in listed]
        wanted = [record["id"] for record in reversed(self.shown[key.id])]
        assert ids == wanted, f"{key.id}: the log has {listed}"
        assert self.settings("requests", key_id=key.id)["data"] == listed, "the coach sees the same"

    def check_summary(self):
        """Checks the coach's figures of each key."""
        summary = self.settings("requests/summary", hours=24)
        self.answers.append(summary)
        assert summary["complete"] is True, summary
        by_key = {one["key_id"]: one for one in summary["data"]}
        for key in self.keys:
            shown, figures = self.shown[key.id], by_key.get(key.id)
            if not shown:
                assert figures is None, figures
                continue
            refused = collections.Counter(record["code"] for record in shown if record["status"] >= 400)
            codes = {one["code"]: one["count"] for one in figures["codes"]}
            seen = (figures["requests"], figures["refused"], codes, figures["last_at"])
            wanted = (len(shown), refused.total(), dict(refused), shown[-1]["at"])
            assert seen == wanted, f"{figures}, expected {wanted}"

    def check_privacy(self):
        """Checks that the log has no value that a client sent, neither in its answers nor in its table."""
        unsent = [word for word in self.words if word not in self.sent]
        assert self.words and self.idempotency_keys and not unsent, f"never sent: {unsent}"
        table = call(self.aws_url, {"TableName": TABLE}, x_amz_target="DynamoDB_20120810.Scan")
        assert "LastEvaluatedKey" not in table, "the table has more than a page"
        private = [*self.words, *self.idempotency_keys, *(key.secret for key in self.keys)]
        ids = [record["id"] for records in self.shown.values() for record in records]
        for name, kept in (("answers", json.dumps(self.answers)), ("table", json.dumps(table))):
            assert not occurring(private, kept), f"private values in the {name}: {occurring(private, kept)}"
            assert occurring(ids, kept) == ids, f"the search does not see the {name}"

    def check_that_checks_fail(self):
        """Checks that another record, a record too many and a private value are found."""
        key = next(key for key in self.keys if self.shown[key.id])
        record = self.shown[key.id][-1]
        for name in record:
            assert is_refused(compare, record, {name: "another"}), f"another {name} is not found"
        for other in self.keys:
            assert other == key or is_refused(self.has, other, record["id"]), "a record of another key"
        spoiled = copy.deepcopy(self)
        spoiled.shown[key.id].pop()
        assert is_refused(spoiled.check_list, key) and is_refused(spoiled.check_summary), "a record too many"
        spoiled.words.append(record["id"])
        assert is_refused(spoiled.check_privacy), "a word that was not sent"
        spoiled.note(record["id"])
        assert is_refused(spoiled.check_privacy), "a private value"


def compare(record, wanted):
    """Asserts that a record has these fields. The order of `parameters` does not matter."""
    seen = {name: sorted(record[name]) if name == "parameters" else record[name] for name in wanted}
    assert seen == wanted, f"the log shows {record}\nexpected {wanted}"


def occurring(values, text):
    """The values that occur in a text, in any case."""
    return [value for value in values if value.lower() in text.lower()]


def is_refused(check, *arguments, **named):
    """Returns True if a check fails."""
    try:
        check(*arguments, **named)
    except (AssertionError, KeyError):
        return True
    return False
