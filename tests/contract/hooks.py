"""Loaded by Schemathesis: who calls, and values that a schema alone cannot tell.

A key has 300 requests a minute, so requests go round over many keys of a coach. The settings are called by another coach: what is
revoked there must not be what the rest calls with. The CRM is a third coach's. A coach has 300 requests to the settings a minute,
too: the stack's clock is moved on in time.
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
from crm_hooks import CrmRequests, own_key
from hypothesis import strategies as st

ACCESS = json.loads(os.environ["CONTRACT_ACCESS"])
KEYS = itertools.cycle(ACCESS["keys"])


CRM = CrmRequests(ACCESS["crm"])


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Hands over what stands in extensions: the members of a body that a link has, so that chains of requests are about the same records,
    and the codes of a refusal, so that each comes with its own alone."""
    methods = (method for path in raw_schema["paths"].values() for method in path.values())
    own = [response for method in methods for response in method["responses"].values()]
    for response in [*own, *raw_schema["components"]["responses"].values()]:
        for link in response.get("links", {}).values():
            if "x-request-body" in link:
                link["requestBody"] = link["x-request-body"]
        if "x-codes" in response:
            for content in response["content"].values():
                content["schema"] = narrowed(content["schema"], response["x-codes"])
            for header in (header for code in response["x-codes"] for header in SENT.get(code, [])):
                response["headers"][header] = {"$ref": f"#/components/headers/{header}"}
            if "body_too_large" in response["x-codes"]:
                for header in RATE.intersection(response["headers"]):
                    response["headers"][header] = {"$ref": f"#/components/headers/{header}"}


# What goes with each answer of the service's own. Those of a gateway in the cloud, which have none of it, are not met here.
SENT = {
    "body_too_large": ["X-Request-Id"],
    "rate_limited": ["X-Request-Id", "RateLimit", "RateLimit-Policy", "Retry-After"],
    "unconfirmed": ["X-Request-Id", "Retry-After"],
    "internal": ["X-Request-Id"],
}


# What goes with it, too, where there is a key or a session.
RATE = {"RateLimit", "RateLimit-Policy"}


def narrowed(schema, codes):
    """The schema of an error that has one of these codes. Of what a gateway says, a refused session alone is met here."""
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


@schemathesis.auth(refresh_interval=None).apply_to(path_regex="^/v1/(?!crm/)")
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


# What is asked for has to lie in the future, and what is taken up again has to have been handed out.
LATER = st.datetimes(datetime.datetime(2100, 1, 1), datetime.datetime(2900, 1, 1))
schemathesis.openapi.format("date-time", LATER.map(lambda at: at.isoformat(timespec="milliseconds") + "Z"))
schemathesis.openapi.format("cursor", st.sampled_from(ACCESS["cursors"]))

TURNS = itertools.count()
SETTINGS_CALLS = itertools.count(1)
# Some checks make calls of their own.
SETTINGS_CALLS_A_MINUTE = 200
ENDPOINTS = itertools.cycle(ACCESS["endpoints"])
TO_SHOW = itertools.cycle(ACCESS["tokens"][:50])
TO_USE = itertools.cycle(ACCESS["tokens"][50:])


@schemathesis.hook
def before_call(context, case, kwargs):
    """Has every second request ask for problem details, and leaves a redirect to be looked at."""
    kwargs["allow_redirects"] = False
    turn = next(TURNS)
    if turn % 2:
        case.headers.setdefault("Accept", "application/problem+json, application/json;q=0.9, */*;q=0.8")
    if case.operation.path == "/login/{token}":
        open_door(case)
    elif case.operation.path == "/v1/clients":
        make_own(case, f"{turn:08x}")
    elif case.operation.path.startswith("/v1/crm/"):
        CRM.prepare(case, turn)
    elif case.operation.path.startswith("/settings/"):
        stay_within_the_minute()
        if case.operation.path.startswith("/settings/webhooks/{id}"):
            visit_endpoint(case)


def stay_within_the_minute():
    """Has the coach's next minute begin before the limit of this one is reached."""
    if next(SETTINGS_CALLS) % SETTINGS_CALLS_A_MINUTE == 0:
        request = urllib.request.Request(ACCESS["clock"], json.dumps({"advance_s": 60}).encode(), method="POST")
        urllib.request.urlopen(request).close()


def open_door(case):
    """Gives a good request a token that a link was made of."""
    if case.meta.generation.mode.is_positive:
        case.path_parameters["token"] = next(TO_USE if case.method == "POST" else TO_SHOW)


def visit_endpoint(case):
    """Gives a good request an endpoint that is there, and a delivery of its. One that deletes may have any: the others need them."""
    in_chain = case.meta.phase.name.value == "stateful"
    if case.meta.generation.mode.is_positive and not in_chain and case.method != "DELETE":
        given = dict(zip(["id", "delivery_id"], next(ENDPOINTS)))
        # Others than the path has would make the request a bad one.
        case.path_parameters |= {name: value for name, value in given.items() if name in case.path_parameters}


MAX_LOCAL_CHARS = 64
MAX_EMAIL_CHARS = 160


def make_own(case, mark):
    """Makes a creation one of its own. Most would be replays of the first otherwise: the same idempotency key, or the same e-mail address,
    which stands for one."""
    own_key(case, mark)
    if isinstance(case.body, dict) and isinstance(case.body.get("email"), str):
        case.body = case.body | {"email": own_address(case.body["email"], mark)}


def own_address(email, mark):
    """The same address for somebody else: no longer where it is as long as it may be."""
    local, at, host = email.rpartition("@")
    if len(local) >= len(mark):
        return mark + local[len(mark) :] + at + host
    fits = local and len(local) + len(mark) <= MAX_LOCAL_CHARS and len(email) + len(mark) <= MAX_EMAIL_CHARS
    return mark + email if fits else email


TALLY = collections.Counter()


@schemathesis.hook
def after_call(context, case, response):
    """Counts what each operation was answered with."""
    if case.method == case.operation.method.upper():
        TALLY[f"{case.operation.definition.raw['operationId']} {response.status_code}"] += 1


@atexit.register
def tell():
    pathlib.Path(ACCESS["tally"]).write_text(json.dumps(TALLY))
