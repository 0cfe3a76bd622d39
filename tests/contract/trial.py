"""The routes of a sandbox as an integrator tries them with a generated client.

`connect` takes an address and a key, and returns a function that calls operations: it takes an operation's name, the
model of its body with the body's JSON, if there is one, and parameters of the query. It returns the model that the
client makes of the answer, or raises `Refused`.
"""

from local_stack import REMOVAL_S, call


class Refused(Exception):
    """The code of a refusal."""


def refusal(ask, operation, *body):
    """Calls an operation that is refused. Returns the code."""
    try:
        answer = ask(operation, *body)
    except Refused as refused:
        return str(refused)
    raise AssertionError(f"{operation} is not refused: {answer}")


def client_fact(client_id):
    """A client with a past."""
    absent = ("phone", "goals", "health_notes", "height_in", "weight_lbs")
    client = dict.fromkeys(absent) | {"client_id": client_id, "email": f"{client_id}@example.com"}
    client |= {"full_name": "Ada Lovelace", "is_active": True, "origin": "import"}
    client |= {"programme_id": "programme_test", "current_phase": "Foundation", "phase_started_on": "2026-01-05"}
    long_ago = "2026-01-05T08:00:00Z"
    return {"type": "client.saved", "detail": client | {"id": "one", "created_at": long_ago, "occurred_at": long_ago}}


def check_in_fact(client_id):
    check_in = {"client_id": client_id, "check_in_id": "first", "submitted_at": "2026-01-12T07:30:00Z"}
    return {"type": "check_in.submitted", "detail": check_in | {"scores": {"sleep": 3}, "grades": {}}}


def try_the_sandbox(base_url, connect, name):
    """Calls each operation as a coach of this name, whom the sandbox has not seen."""
    session = call(f"{base_url}/_local/session", {"coach_id": name})["token"]
    wanted = {"name": "Trial", "scope": "partner"}
    key = call(f"{base_url}/settings/keys", wanted, authorization=f"Bearer {session}")["key"]
    assert key.startswith("svc_test_"), key
    ask, client, address = connect(base_url, key), f"client-{name}", f"grace-{name}@example.com"

    facts = [client_fact(client), client_fact(client), check_in_fact("nobody")]
    first, again, refused = ask("send_facts", "SendFacts", {"facts": facts}).data
    assert (first.id, first.result, first.reason) == ("one", "stored", None), first
    assert (again.id, again.result, again.reason) == ("one", "unchanged", None), again
    assert refused.result == "refused" and "nobody" in refused.reason, refused

    switched = {"entitlements": {"gym": False}, "client_cap": None}
    workspace = ask("update_test_workspace", "UpdateTestWorkspace", switched)
    entitlements = workspace.entitlements
    assert (entitlements.partner_api, entitlements.pro_crm, entitlements.gym) == (True, True, False), workspace
    assert workspace.coach_id == name and workspace.crm_configured is True, workspace

    evaluation = ask("evaluate_clients")
    assert evaluation.evaluated >= 0 and (evaluation.events, evaluation.more) == (0, False), evaluation

    event = {"type": "compliance_drop", "client_id": client}
    assert ask("send_test_event", "SendTestEvent", event).id.startswith("evt_")
    assert refusal(ask, "send_test_event", "SendTestEvent", event | {"client_id": "nobody"}) == "not_found"

    assert call(f"{base_url}/v1/clients", {"email": address}, x_api_key=key)["welcome_email_sent"] is True
    mails = ask("list_mails", limit=1)
    [mail] = mails.data
    assert mail.to == address and mail.subject and mail.text and mail.html and mail.sent_at, mail
    assert mails.next_cursor is None, mails

    assert refusal(ask, "read_wipe") == "not_found"
    job = ask("wipe_test_data").job
    assert ask("wipe_test_data").job == job, "a second removal joins the first one"
    assert (ask("read_wipe").job, ask("read_wipe").status) == (job, "running")
    assert refusal(ask, "send_facts", "SendFacts", {"facts": facts}) == "test_data_wiping"
    call(f"{base_url}/_local/clock", {"advance_s": REMOVAL_S})
    assert (ask("read_wipe").job, ask("read_wipe").status) == (job, "done")
    assert ask("list_mails").data == []
    assert ask("send_facts", "SendFacts", {"facts": facts}).data[0].result == "stored", "the id is unseen again"
