"""Data of the sandbox under test: five coaches, their clients and contacts, keys and sessions."""

import itertools
import json
import re
import urllib.request

import crm_world
from local_stack import call

# Two coaches try the routes of the sandbox, which change a whole workspace: one is switched, the other is emptied.
TRYING, EMPTIED = "trying", "emptied"
COACHES = ("partner", crm_world.COACH, "settings", TRYING, EMPTIED)
EMITTED = [
    "new_client",
    "check_in_submitted",
    "low_check_in_score",
    "system_grade_drop",
    "phase_advanced",
    "message_received",
    "contact_created",
    "contact_updated",
    "contact_merged",
    "opportunity_created",
    "opportunity_updated",
    "opportunity_stage_changed",
    "booking_created",
    "booking_rescheduled",
    "booking_cancelled",
]
# The most live keys of a workspace. Each has 300 requests a minute.
KEYS = 50
SANDBOX_KEYS = 20
LINKS = 300
CLIENTS = 8
INACTIVE, WITHOUT_EMAIL = 6, 7
PUT_ENTRIES = 10
MAILS = 5
ENDPOINTS = 4


def publish_facts(base_url, aws_url):
    """Publishes the application's facts in waves. Facts refer to earlier waves, so a wave may apply in any order."""
    numbers = itertools.count()

    def entry(name, detail):
        detail = {"id": f"fact-{next(numbers)}", "occurred_at": "2026-01-01T00:00:00Z"} | detail
        source = {"EventBusName": "partner-api", "Source": "coaching.application"}
        return source | {"DetailType": name, "Detail": json.dumps(detail)}

    def of_crm(facts):
        return [(name, {"coach_id": crm_world.COACH} | detail) for name, detail in facts]

    waves = (
        workspaces(),
        [*clients(), *of_trying(), *of_crm(crm_world.records())],
        [*client_events(), *of_crm(crm_world.dependent_records())],
    )
    for wave in waves:
        entries = [entry(name, detail) for name, detail in wave]
        for start in range(0, len(entries), PUT_ENTRIES):
            some = {"Entries": entries[start : start + PUT_ENTRIES]}
            put = call(aws_url, some, x_amz_target="AWSEvents.PutEvents")
            assert put["FailedEntryCount"] == 0, put
        call(f"{base_url}/_local/settle", {})


def workspaces():
    """One coach for the partner routes, one for the CRM, one for the settings, two for the routes of the sandbox."""
    for coach in COACHES:
        workspace = {
            "coach_id": coach,
            "email": f"{coach}@coaches.example",
            "name": f"Coach {coach}",
            "team_id": None,
            "canonical_host": f"https://{coach}.example",
            "time_zone": "America/New_York",
            "country": "US",
            "plan": {"client_cap": None},
            "entitlements": {"partner_api": True, "pro_crm": True, "gym": True},
            "crm": {"pipeline_id": "pipeline-1", "initial_stage": "new"},
        }
        yield "workspace.saved", workspace


def clients():
    """Clients, one of them inactive and one without an e-mail address."""
    for number in range(CLIENTS):
        client = client_of("partner", f"client-{number}", f"2026-01-01T00:00:0{number}Z")
        if number == WITHOUT_EMAIL:
            client["email"] = None
        yield "client.saved", client | {"is_active": number != INACTIVE}


def client_of(coach, client_id, created_at="2026-01-01T00:00:00Z"):
    """A client of a coach."""
    return {
        "client_id": client_id,
        "coach_id": coach,
        "email": f"{client_id}@example.com",
        "full_name": f"Client {client_id}",
        "phone": None,
        "goals": "Sleep",
        "health_notes": None,
        "height_in": 70.5,
        "weight_lbs": None,
        "is_active": True,
        "current_phase": "Foundation",
        "phase_started_on": "2026-01-01",
        "programme_id": None,
        "created_at": created_at,
        "origin": "import",
    }


TRIED_CLIENT, TRIED_CONTACT = "trying-client", crm_world.record_id("contact", "trying")


def of_trying():
    """A client and a contact for events on demand."""
    yield "client.saved", client_of(TRYING, TRIED_CLIENT)
    contact = crm_world.contact("trying") | {"contact_id": TRIED_CONTACT}
    yield "contact.saved", contact | {"coach_id": TRYING}


def client_events():
    """Events in each client's life."""
    for number in range(CLIENTS):
        client = {"client_id": f"client-{number}"}
        check_in = client | {"check_in_id": f"check-in-{number}"}
        submitted = {"submitted_at": "2026-01-02T00:00:00Z", "scores": {}, "grades": {}}
        yield "check_in.submitted", check_in | submitted
        dose = {"dose_id": "dose-1", "per_day": 2, "from": "2026-01-01", "until": None}
        yield "dose_schedule.saved", client | {"doses": [dose]}
        for day in ("2026-01-04", "2026-01-05"):
            yield "daily_log.saved", client | {"date": day}
            log = {"dose_log_id": f"log-{number}-{day}", "dose_id": "dose-1", "date": day}
            yield "dose.logged", client | log


def access(base_url):
    """Keys of the coaches, the session of the one with settings, valid cursors and login tokens, records of the CRM."""
    tokens = {coach: call(f"{base_url}/_local/session", {"coach_id": coach})["token"] for coach in COACHES}
    events = {"types": EMITTED, "payload_mode": "contact_details"}
    key = {"name": "Contract", "scope": "partner", "events": events}
    bearer = f"Bearer {tokens['partner']}"
    keys = [call(f"{base_url}/settings/keys", key, authorization=bearer)["key"] for _ in range(KEYS)]
    listed = f"{base_url}/v1/clients?updated_since=2026-01-01T00:00:00Z"
    pages = [call(f"{base_url}/v1/clients?limit={limit}", x_api_key=keys[0]) for limit in (1, 3, 5)]
    updates = [call(f"{listed}&limit={limit}", x_api_key=keys[0]) for limit in (1, 3, 5)]

    def link(number):
        url = f"{base_url}/v1/clients/client-{number % INACTIVE}/login-link"
        return call(url, {}, x_api_key=keys[number % KEYS])["login_url"]

    trying = sandbox_keys(base_url, tokens[TRYING])
    for number in range(MAILS):
        call(f"{base_url}/v1/clients", {"email": f"mail-{number}@example.com"}, x_api_key=trying[0])
    with urllib.request.urlopen(f"{base_url}/portal") as shell:
        portal_files = re.findall(r"/portal/assets/([^\"]+)", shell.read().decode())
    return {
        "keys": keys,
        "portal_files": portal_files,
        "session": tokens["settings"],
        "clock": f"{base_url}/_local/clock",
        "cursors": [page["next_cursor"] for page in pages],
        "feed_cursor": call(f"{base_url}/v1/events", x_api_key=keys[0])["next_cursor"],
        "update_cursors": [page["next_cursor"] for page in updates],
        "endpoints": [endpoint(base_url, tokens["settings"]) for _ in range(ENDPOINTS)],
        "crm": crm_world.crm_access(base_url, tokens[crm_world.COACH], KEYS),
        "sandbox": {
            "trying": trying,
            "emptied": sandbox_keys(base_url, tokens[EMPTIED]),
            "client": TRIED_CLIENT,
            "contact": TRIED_CONTACT,
        },
        "tokens": [link(number).rsplit("/", 1)[1] for number in range(LINKS)],
    }


def sandbox_keys(base_url, session):
    """Keys of both scopes in turn."""
    scopes = ({"scope": "partner"}, {"scope": "crm", "permissions": crm_world.PERMISSIONS})
    wanted = [{"name": "Contract"} | scopes[number % 2] for number in range(SANDBOX_KEYS)]
    return [call(f"{base_url}/settings/keys", one, authorization=f"Bearer {session}")["key"] for one in wanted]


def endpoint(base_url, session):
    """Creates a webhook endpoint and a delivery to it. Returns their ids."""
    bearer = f"Bearer {session}"
    draft = {"url": "https://receiver.example/", "events": ["new_client"], "payload_mode": "identifiers"}
    made = call(f"{base_url}/settings/webhooks", draft, authorization=bearer)["id"]
    sent = call(f"{base_url}/settings/webhooks/{made}/test", {}, authorization=bearer)
    return [made, sent["delivery_id"]]
