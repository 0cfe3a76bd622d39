"""Hooks for Schemathesis: credentials, and values that a schema alone cannot give.

A key has 300 requests a minute, so requests cycle through many keys of a coach. A second coach calls the settings,
since revoking keys there must not break the other calls. A third coach calls the CRM, and two more the routes of the
sandbox, which change a whole workspace. A coach also has 300 requests a minute to the settings, so the stack's clock
is advanced before that limit.
"""

import atexit
import collections
import datetime
import itertools
import json
import os
import pathlib
import urllib.request

import schemathesis
from crm_hooks import KEPT_KEYS, CrmRequests, in_chain, make_key_unique
from hypothesis import strategies as st
from sandbox_hooks import SandboxRequests

ACCESS = json.loads(os.environ["CONTRACT_ACCESS"])
KEYS = itertools.cycle(ACCESS["keys"])
CRM = CrmRequests(ACCESS["crm"])
SANDBOX = SandboxRequests(ACCESS["sandbox"])


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Applies the document's extensions: request bodies of links, so that chains of requests use the same records, and
    the error codes of a response, so that it accepts only its own."""
    methods = (method for path in raw_schema["paths"].values() for method in path.values())
    own = [response for method in methods for response in method["responses"].values()]
    components = raw_schema["components"]
    for response in [*own, *components["responses"].values()]:
        for link in response.get("links", {}).values():
            if "x-request-body" in link:
                link["requestBody"] = link["x-request-body"]
        if "x-codes" in response:
            for content in response["content"].values():
                content["schema"] = narrowed(content["schema"], response["x-codes"])
            always = {header for code in response["x-codes"] for header in ERROR_HEADERS.get(code, [])}
            if "body_too_large" in response["x-codes"]:
                always |= RATE_HEADERS.intersection(response["headers"])
            for header in always:
                component = response["headers"][header]["$ref"].removeprefix("#/components/headers/")
                response["headers"][header] = {**components["headers"][component], "required": True}


# Headers of the service's own errors, by code. A gateway's errors have none of them and do not occur here.
ERROR_HEADERS = {
    "body_too_large": ["X-Request-Id"],
    "rate_limited": ["X-Request-Id", "RateLimit", "RateLimit-Policy", "Retry-After"],
    "unconfirmed": ["X-Request-Id", "Retry-After"],
    "internal": ["X-Request-Id"],
}


# Further headers of a body_too_large for callers with a key or a session.
RATE_HEADERS = {"RateLimit", "RateLimit-Policy"}


def narrowed(schema, codes):
    """The schema of an error with one of these codes. Of a gateway's errors, only a refused session occurs here."""
    if "anyOf" in schema:
        ours, gateways = schema["anyOf"]
        return {"anyOf": [narrowed(ours, codes), gateways]} if "unauthorized" in codes else narrowed(ours, codes)
    return {"allOf": [schema, {"properties": {"code": {"enum": codes}}}]}


@schemathesis.auth(refresh_interval=None).apply_to(path_regex="^/v1/crm/")
class CrmKey:
    def get(self, case, context):
        return CRM.next_key()

    def set(self, case, key, context):
        case.headers["Authorization"] = f"Bearer {key}"


@schemathesis.auth(refresh_interval=None).apply_to(path_regex="^/v1/test/")
class TestKey:
    def get(self, case, context):
        return SANDBOX.next_key(case.operation.path)

    def set(self, case, key, context):
        case.headers["Authorization"] = f"Bearer {key}"


@schemathesis.auth(refresh_interval=None).apply_to(path_regex="^/v1/(?!crm/|test/)")
class PartnerKey:
    def get(self, case, context):
        return next(KEYS)

    def set(self, case, key, context):
        case.headers["Authorization"] = f"Bearer {key}"


@schemathesis.auth(refresh_interval=None).apply_to(path_regex="^/settings/")
class Session:
    def get(self, case, context):
        return ACCESS["session"]

    def set(self, case, token, context):
        case.headers["Authorization"] = f"Bearer {token}"


# Times in requests have to be in the future, and cursors have to come from the service.
LATER = st.datetimes(datetime.datetime(2100, 1, 1), datetime.datetime(2900, 1, 1))
schemathesis.openapi.format("date-time", LATER.map(lambda at: at.isoformat(timespec="milliseconds") + "Z"))
schemathesis.openapi.format("cursor", st.sampled_from(ACCESS["cursors"]))

TURNS = itertools.count()
UPDATE_CURSORS = itertools.cycle(ACCESS["update_cursors"])
PORTAL_FILES = itertools.cycle(ACCESS["portal_files"])
SETTINGS_CALLS = itertools.count(1)
# Below 300, since some checks make calls of their own.
SETTINGS_CALLS_A_MINUTE = 200
ENDPOINTS = itertools.cycle(ACCESS["endpoints"])
KEPT_ENDPOINTS = {given[0] for given in ACCESS["endpoints"]}
TO_SHOW = itertools.cycle(ACCESS["tokens"][:50])
TO_USE = itertools.cycle(ACCESS["tokens"][50:])


@schemathesis.hook
def before_call(context, case, kwargs):
    """Requests problem details in every second call, and keeps redirects for the checks."""
    kwargs["allow_redirects"] = False
    turn = next(TURNS)
    if turn % 2:
        case.headers.setdefault("Accept", "application/problem+json, application/json;q=0.9, */*;q=0.8")
    if case.operation.path == "/login/{token}":
        set_login_token(case)
    elif case.operation.path == "/portal/assets/{file}" and case.meta.generation.mode.is_positive:
        case.path_parameters["file"] = next(PORTAL_FILES)
    elif case.operation.path in ("/v1/clients", "/v1/clients/{clientId}"):
        make_unique(case, f"{turn:08x}")
        set_update_cursor(case)
        set_name_filter(case)
    elif case.operation.path == "/v1/events":
        set_feed_cursor(case)
    elif case.operation.path == "/v1/requests":
        leave_cursor_out(case)
    elif case.operation.path.startswith("/v1/crm/"):
        CRM.prepare(case, turn)
    elif case.operation.path.startswith("/v1/test/"):
        leave_cursor_out(case)
        SANDBOX.prepare(case, turn)
    elif case.operation.path.startswith("/settings/"):
        advance_before_rate_limit()
        leave_cursor_out(case)
        # A replayed creation names a record that another chain may have deleted.
        if turn % KEPT_KEYS or in_chain(case):
            make_key_unique(case, f"{turn:08x}")
        show_text(case)
        if case.operation.path.startswith("/settings/keys"):
            set_expiry(case)
        if case.operation.path.startswith("/settings/webhooks/{id}"):
            set_endpoint(case)


def advance_before_rate_limit():
    """Advances the clock to the next minute before the coach's limit is reached."""
    if next(SETTINGS_CALLS) % SETTINGS_CALLS_A_MINUTE == 0:
        request = urllib.request.Request(ACCESS["clock"], json.dumps({"advance_s": 60}).encode(), method="POST")
        urllib.request.urlopen(request).close()


def set_login_token(case):
    """Sets a minted link's token in a positive request."""
    if case.meta.generation.mode.is_positive:
        case.path_parameters["token"] = next(TO_USE if case.method == "POST" else TO_SHOW)


MAX_BMP = "\uffff"


def show_text(case):
    """Gives a name or description beyond the Basic Multilingual Plane a visible character in a positive request. The
    service refuses a text that does not show, and the document's pattern cannot say which signs there do not."""
    if isinstance(case.body, dict) and case.meta.generation.mode.is_positive:
        for name in ("name", "description"):
            text = case.body.get(name)
            if isinstance(text, str) and any(sign > MAX_BMP for sign in text):
                case.body = case.body | {name: "N" + text[1:]}


def set_expiry(case):
    """Sets a later expiry in a positive request: values of earlier answers, which are tried too, are past by then."""
    has_expiry = isinstance(case.body, dict) and isinstance(case.body.get("expires_at"), str)
    if has_expiry and case.meta.generation.mode.is_positive:
        case.body["expires_at"] = "2126-01-01T00:00:00Z"


def set_endpoint(case):
    """Sets an existing endpoint and its delivery in a positive request. A deletion keeps its own: others need these."""
    if case.method == "DELETE" and case.path_parameters.get("id") in KEPT_ENDPOINTS:
        # Ids of earlier answers are tried too.
        case.path_parameters["id"] = "we_" + "0" * 32
    if case.meta.generation.mode.is_positive and not in_chain(case) and case.method != "DELETE":
        given = dict(zip(["id", "delivery_id"], next(ENDPOINTS)))
        # Parameters that are not in the path would make the request invalid.
        case.path_parameters |= {name: value for name, value in given.items() if name in case.path_parameters}


def set_feed_cursor(case):
    """Sets a cursor of the ascending feed in a positive request for it. The descending feed has too few events for a
    cursor."""
    query = case.query or {}
    if case.meta.generation.mode.is_positive and query.get("cursor"):
        query["cursor"] = "" if query.get("order") == "desc" else ACCESS["feed_cursor"]


def leave_cursor_out(case):
    """Leaves the cursor out of a positive request to a list with cursors of its own. Requests in a chain have the
    cursors of earlier answers, or else a generated one of the list of clients."""
    cursor = (case.query or {}).get("cursor")
    is_of_answer = in_chain(case) and cursor not in ACCESS["cursors"]
    if case.meta.generation.mode.is_positive and cursor and not is_of_answer:
        case.query["cursor"] = ""


def set_update_cursor(case):
    """Sets a cursor of the list by update in a positive request for that list."""
    query = case.query or {}
    if case.meta.generation.mode.is_positive and query.get("updated_since") and query.get("cursor"):
        query["cursor"] = next(UPDATE_CURSORS)


def set_name_filter(case):
    """Gives the name of a positive request a letter, or leaves it out beside another filter that it does not go with.
    The service refuses a name of marks alone, and the document cannot say which signs are marks."""
    query = case.query or {}
    if case.meta.generation.mode.is_positive and query.get("name"):
        query["name"] = "N" + query["name"][1:]
        if query.keys() & {"email", "external_id"}:
            del query["name"]


MAX_LOCAL_CHARS = 64
MAX_EMAIL_CHARS = 160


def make_unique(case, mark):
    """Makes a write unique. Otherwise most creations would replay the first one: by the same idempotency key, or by the
    same e-mail address, from which a key is derived. The same external id would be taken."""
    make_key_unique(case, mark)
    body = case.body if isinstance(case.body, dict) else {}
    if isinstance(body.get("email"), str):
        case.body = body = body | {"email": unique_address(body["email"], mark)}
    if isinstance(body.get("external_id"), str) and case.meta.generation.mode.is_positive:
        case.body = body | {"external_id": mark + body["external_id"][len(mark) :]}


def unique_address(email, mark):
    """A unique variant of the address, not longer than the maximum."""
    local, at, host = email.rpartition("@")
    if len(local) >= len(mark):
        return mark + local[len(mark) :] + at + host
    fits = local and len(local) + len(mark) <= MAX_LOCAL_CHARS and len(email) + len(mark) <= MAX_EMAIL_CHARS
    return mark + email if fits else email


TALLY = collections.Counter()


@schemathesis.hook
def after_call(context, case, response):
    """Counts each operation's answers by status."""
    if case.method == case.operation.method.upper():
        TALLY[f"{case.operation.definition.raw['operationId']} {response.status_code}"] += 1


@atexit.register
def write_tally():
    pathlib.Path(ACCESS["tally"]).write_text(json.dumps(TALLY))
