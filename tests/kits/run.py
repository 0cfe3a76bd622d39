"""The kits for n8n, Zapier and Make: valid as far as public validators go, and run against a stack.

Takes the paths of the stack under test and of a folder for the packages from npm. Runs with PYTHONPATH=tests and
tests/verification. Needs node and npm.
"""

import copy
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.request

from coach import EVENTS, Coach
from local_stack import stack

import make
import n8n

HERE = pathlib.Path(__file__).resolve().parent
KITS = HERE.parents[1] / "functions" / "docs" / "kits"
ZAPIER = "zapier-platform-core@19.1.0"
# Only the descriptions of its nodes are used, so its many dependencies are not installed.
N8N_NODES = "n8n-nodes-base@2.41.2"


def install(tools):
    """Installs what the checks need, once. Returns the descriptions of n8n's nodes."""
    tools.mkdir(parents=True, exist_ok=True)
    if not (tools / "node_modules" / "zapier-platform-core").exists():
        flags = ["--silent", "--no-save", "--ignore-scripts", "--prefix", tools]
        subprocess.run(["npm", "install", *flags, ZAPIER], check=True)
    descriptions = tools / "nodes.json"
    if not descriptions.exists():
        packed = subprocess.run(["npm", "pack", "--silent", N8N_NODES], cwd=tools, check=True, capture_output=True, text=True)
        archive = tools / packed.stdout.split()[-1]
        with tarfile.open(archive) as files, files.extractfile("package/dist/types/nodes.json") as file:
            descriptions.write_bytes(file.read())
        archive.unlink()
    return json.loads(descriptions.read_text())


def is_refused(check, *arguments):
    try:
        check(*arguments)
    except (AssertionError, KeyError):
        return True
    return False


def run_n8n(coach, key, types):
    workflow = json.loads((KITS / "n8n-workflow.json").read_text())
    n8n.check(workflow, types)
    for place, value in (("typeVersion", 99), ("type", "n8n-nodes-base.nothing"), ("parameters", {"nothing": 1})):
        broken = copy.deepcopy(workflow)
        broken["nodes"][4][place] = value
        assert is_refused(n8n.check, broken, types), f"a wrong {place} is not found"

    static_data = {}

    def execute(start, end="Your work", **given):
        nonlocal static_data
        asked = {"workflow": workflow, "start": start, "staticData": static_data, "base": coach.base_url, "key": key}
        done = subprocess.run(["node", HERE / "n8n.mjs"], input=json.dumps(asked | given), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        static_data = result["staticData"]
        return result["reached"].get(end, [])

    assert execute("Every minute") == [] and static_data["cursor"], "the first run only sets the cursor"
    coach.create_client("n8n-1")
    coach.create_client("n8n-2")
    events = execute("Every minute")
    assert [event["data"]["client"]["id"] for event in events] == ["client-n8n-1", "client-n8n-2"], events
    assert execute("Every minute") == []
    client = {"email": "n8n@example.com", "full_name": "", "external_id": "n8n-3", "reference": "order-n8n"}
    create = ("When another workflow calls", "Create a client")
    [made] = execute(*create, input=client)
    assert made["client_id"] == execute(*create, input=client)[0]["client_id"]
    coach.settle()
    assert [event["data"]["client"]["id"] for event in execute("Every minute")] == [made["client_id"]]
    coach.create_client("n8n-4")
    booking = coach.book(1)
    [booked] = execute("Every minute", "Your work with bookings")
    assert (booked["type"], booked["data"]["booking"]["id"]) == ("booking_created", booking), booked
    print("n8n: known nodes and parameters, and both parts run", flush=True)


def run_zapier(coach, key, tools):
    core = tools / "node_modules" / "zapier-platform-core"
    asked = {"base": coach.base_url, "key": key, "keyWithoutEvents": coach.key, "type": "new_client"}
    command = ["node", HERE / "zapier.cjs", core, KITS / "zapier-app.js"]
    # The library prints the use of memory.
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print("zapier: valid, and its parts run", flush=True)


def run_make(coach, key):
    definition = json.loads((KITS / "make-app.json").read_text())
    make.check(definition)
    broken = copy.deepcopy(definition)
    broken["modules"]["getClient"]["communication"]["url"] = "/clients/{{parameters.nobody}}"
    assert is_refused(make.check, broken), "a parameter that is not there is not found"

    app = make.App(definition, coach.base_url, key)
    assert app.connect() == "Coach"
    client = {"email": "make@example.com", "full_name": "Max Make", "external_id": "make-1", "send_welcome": False}
    [made] = app.run("modules", "createClient", reference="order-make", **client)
    assert app.run("modules", "createClient", reference="order-make", **client) == [made]
    coach.settle()
    for by in ({"external_id": "make-1"}, {"email": "MAKE@example.com"}):
        [found] = app.run("modules", "findClients", **by)
        assert found["client_id"] == made["client_id"]
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
    pages, cursor = [], None
    while not pages or pages[-1]["has_more"]:
        pages += app.run("modules", "readEvents", cursor=cursor, types="new_client")
        cursor = pages[-1]["next_cursor"]
    events = [event for page in pages for event in page["data"]]
    assert events == newest[::-1], "both read the same events, in reverse order"
    print("make: structure, and all modules run", flush=True)


def main(binary, tools):
    if not (shutil.which("node") and shutil.which("npm")):
        print("kits: skipped, there is no node and npm here")
        return
    began, tools = time.monotonic(), pathlib.Path(tools).resolve()
    types = install(tools)
    with stack(binary) as (base_url, aws_url):
        coach = Coach(base_url, aws_url)
        allowed = {"types": [*EVENTS, "phase_advanced", "booking_created"], "payload_mode": "identifiers"}
        key = coach.settings("keys", {"name": "Kits", "scope": "partner", "events": allowed})["key"]
        for kit in ("n8n-workflow.json", "zapier-app.js", "make-app.json"):
            with urllib.request.urlopen(f"{base_url}/docs/{kit}") as answer:
                served = answer.read().decode().replace(base_url, "https://api.example.com")
                assert served == (KITS / kit).read_text(), f"{kit}: another file is served"
        coach.emit_events()
        run_n8n(coach, key, types)
        run_zapier(coach, key, tools)
        run_make(coach, key)
    print(f"kits: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
