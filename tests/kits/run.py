"""The kits for n8n, Zapier and Make: valid as far as public validators go, and run against a sandbox, with which their
users begin.

Takes the paths of the stack under test and of a folder for the packages from npm. Runs with PYTHONPATH=tests and
tests/verification. Needs node and npm.
"""

import contextlib
import copy
import hashlib
import json
import pathlib
import sys
import time
import urllib.request

from coach import EVENTS, Coach
from line_program import LineProgram
from local_stack import sandbox
from mistakes import mistakes_with_clients
from request_log import RequestLog, is_refused

import make
import n8n
import packages
from senders import Make, N8n, Zapier

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "functions" / "docs"
KITS = DOCS / "kits"
GUIDE = (DOCS / "pages" / "kits.md").read_text()
NO_REFERENCES = (None, "", " ")


def references(kit):
    """Two references. Their last characters differ in the upper bits only."""
    return f"Bestellung {kit} €", f"Bestellung {kit} ¬"


def hashed(reference):
    return hashlib.sha256(reference.encode()).hexdigest()


def run_n8n(scope, coach, key, types, tools):
    workflow = json.loads((KITS / "n8n-workflow.json").read_text())
    n8n.check(workflow, types)
    for place, value in (("typeVersion", 99), ("type", "n8n-nodes-base.nothing"), ("parameters", {"nothing": 1})):
        broken = copy.deepcopy(workflow)
        broken["nodes"][4][place] = value
        assert is_refused(n8n.check, broken, types), f"a wrong {place} is not found"

    # An address with a slash is the same address.
    kit = n8n.Engine(scope, tools, workflow, f"{coach.base_url}/", key)
    assert "Your work" not in kit.execute() and kit.static_data["global"]["cursor"], "the first run sets the cursor"
    coach.create_client("n8n-1")
    coach.create_client("n8n-2")
    clients = [event["data"]["client"]["id"] for event in kit.execute()["Your work"]]
    assert clients == ["client-n8n-1", "client-n8n-2"], clients
    assert [request["headers"]["x-mode"] for request in kit.requests] == ["test"], kit.requests
    assert "Your work" not in kit.execute()
    coach.create_client("n8n-3")
    booking = coach.book(1)
    for failing in ("Your work", "Your work with bookings", "Read the feed", "Events"):
        kit.execute(failing=failing)
    reached = kit.execute()
    assert [event["type"] for event in reached["Your work"]] == ["new_client", "booking_created"], "they come again"
    [booked] = reached["Your work with bookings"]
    assert (booked["type"], booked["data"]["booking"]["id"]) == ("booking_created", booking), booked

    for number, reference in enumerate(references("n8n")):
        client = {"email": f"n8n-{number}@example.com", "full_name": "", "reference": reference}
        made, headers = kit.create(**client)
        assert made["email"] == client["email"], made
        assert kit.create(**client)[0] == made and headers["Idempotency-Key"] == hashed(reference), headers
    for number, reference in enumerate(NO_REFERENCES):
        made, headers = kit.create(email=f"n8n-without-{number}@example.com", reference=reference)
        assert made["client_id"] and "Idempotency-Key" not in headers, headers
    print("n8n: known nodes and parameters, and both parts run", flush=True)
    return N8n(kit)


def run_zapier(scope, coach, key, tools):
    core = tools / "node_modules" / "zapier-platform-core"
    asked = {"base": coach.base_url, "key": key, "keyWithoutEvents": coach.key, "type": "new_client"}
    hashes = {reference: hashed(reference) for reference in references("zapier")}
    asked |= {"references": hashes, "noReferences": NO_REFERENCES, "guide": GUIDE}
    app = LineProgram(scope, ["node", HERE / "zapier.cjs", core, KITS / "zapier-app.js"])
    print("zapier:", app.ask(asked), flush=True)
    return Zapier(app, coach.base_url)


def run_make(coach, key):
    definition = json.loads((KITS / "make-app.json").read_text())
    make.check(definition)
    for module in definition["modules"].values():
        article = "an" if module["type"] == "action" else "a"
        assert f"| {module['label']}, {article} {module['type']} | " in GUIDE, f"the guide has no {module['label']}"
    broken = copy.deepcopy(definition)
    broken["modules"]["getClient"]["communication"]["url"] = "/clients/{{parameters.nobody}}"
    assert is_refused(make.check, broken), "a parameter that is not there is not found"

    app = make.App(definition, f"{coach.base_url}/", key)
    assert app.connect() == "Coach"
    for number, reference in enumerate(NO_REFERENCES):
        empty = {"email": f"make-{number}@example.com", "full_name": "", "external_id": "", "reference": reference}
        [other] = app.run("modules", "createClient", **empty)
        assert other["client_id"] and "idempotency-key" not in app.exchange.sent, other
    reference, other_reference = references("make")
    [other] = app.run("modules", "createClient", reference=other_reference, email="make-other@example.com", phone="")
    client = {"email": "make@example.com", "full_name": "Max Make", "external_id": "make-1", "send_welcome": False}
    [made] = app.run("modules", "createClient", reference=reference, **client)
    assert app.exchange.sent["idempotency-key"] == hashed(reference)
    assert app.run("modules", "createClient", reference=reference, **client) == [made]
    assert (other["email"], made["email"]) == ("make-other@example.com", "make@example.com"), "two references"
    coach.settle()
    for by in ({"external_id": "make-1"}, {"email": "MAKE@example.com"}):
        [found] = app.run("modules", "findClients", **by)
        assert found["client_id"] == made["client_id"]
    for nobody in ({}, {"external_id": "", "email": ""}, {"external_id": "nobody"}):
        assert app.run("modules", "findClients", **nobody) == [], "an empty look-up finds nobody"
    [read] = app.run("modules", "getClient", client=made["client_id"])
    assert read["email"] == "make@example.com"
    listed = app.run("rpcs", "listClients")
    assert {"label": "Max Make", "value": made["client_id"]} in listed, listed
    newest = app.run("modules", "watchEvents", types="new_client")
    assert newest[0]["data"]["client"]["id"] == made["client_id"], newest[0]
    booking = coach.book(2)
    [newest_booking, *_] = app.run("modules", "watchBookings")
    sample = definition["modules"]["watchBookings"]["samples"]
    assert newest_booking["data"]["booking"].keys() == sample["data"]["booking"].keys()
    assert newest_booking["data"]["booking"]["id"] == booking
    assert app.run("modules", "watchEvents", types="")[1:]
    pages, cursor = [], ""
    while not pages or pages[-1]["has_more"]:
        pages += app.run("modules", "readEvents", cursor=cursor, types="new_client")
        cursor = pages[-1]["next_cursor"]
    events = [event for page in pages for event in page["data"]]
    assert events == newest[::-1], "both read the same events, in reverse order"
    print("make: structure, and all modules run", flush=True)
    return Make(app)


def main(binary, tools):
    if not packages.are_possible():
        print("kits: skipped, there is no node and npm here")
        return
    began, tools = time.monotonic(), pathlib.Path(tools).resolve()
    types = packages.install(tools)
    with sandbox(binary) as (base_url, aws_url):
        coach = Coach(base_url, aws_url)
        allowed = {"types": [*EVENTS, "phase_advanced", "booking_created"], "payload_mode": "identifiers"}
        key = coach.settings("keys", {"name": "Kits", "scope": "partner", "events": allowed})["key"]
        for kit in ("n8n-workflow.json", "zapier-app.js", "make-app.json"):
            with urllib.request.urlopen(f"{base_url}/docs/{kit}") as answer:
                served = answer.read().decode().replace(base_url, "https://api.example.com")
                assert served == (KITS / kit).read_text(), f"{kit}: another file is served"
        coach.emit_events()
        with contextlib.ExitStack() as scope:
            senders = {
                "n8n": run_n8n(scope, coach, key, types, tools),
                "zapier": run_zapier(scope, coach, key, tools),
                "make": run_make(coach, key),
            }
            for name, sender in senders.items():
                log = RequestLog(base_url, aws_url, coach.bearer)
                mistakes_with_clients(log, sender)
                log.check(name)
    print(f"kits: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
