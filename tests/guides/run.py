"""Runs the commands of the README's tour and of the guides in order, as a reader pastes them, against a stack with its
demo, and those of the guide to the sandbox against a sandbox. Each is answered, and refused only if the text says so.

Takes the path of the stack under test. Runs with PYTHONPATH=tests. Needs bash, curl and sed.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from local_stack import REMOVAL_S, call, sandbox, stack

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "functions" / "docs" / "pages"
# In reading order: later guides use variables that earlier ones set.
GUIDES = ["getting-started", "index", "crm", "assistants", "idempotency", "errors", "limits", "events", "event-feed", "syncing", "kits"]
OPERATORS = ROOT / "infra" / "guides"
PRINTED_ADDRESS = "http://127.0.0.1:8080"
# Prints the status of each call to stderr.
PREAMBLE = """
set -euo pipefail
curl() { command curl "$@" -w '%{stderr}status %{http_code}\\n'; }
"""
# The addresses, keys and ids in the served guides: the stack's, and those of its demo.
EXAMPLE_ADDRESSES = ("https://api.example.com", "https://sandbox.example.com")
EXAMPLE_VALUES = {
    "svc_live_...": "partner_key",
    "crm_live_...": "crm_key",
    "svc_test_...": "partner_key",
    "crm_test_...": "crm_key",
    "we_...": "endpoint_id",
}
CRM_PERMISSIONS = ["contacts.read", "contacts.write", "opportunities.read", "bookings.read"]
# Everything is delivered before the data is removed.
SETTLE = 'command curl -sS "$BASE/_local/settle" -d "{}" >&2\n'


def commands(text):
    """The blocks of shell commands that call the API, also by a function of the page, or set its URL, and the scripts in
    Python."""
    blocks = []
    for language, block in re.findall(r"```(sh|python)(?: [^\n]*)?\n(.*?)```", text, re.DOTALL):
        if language == "python":
            script = f"BASE=$BASE KEY=$KEY python3 - <<'SCRIPT'\n{block}SCRIPT\n"
            # The second run finds what the first one stored.
            blocks += [script, script] if "import" in block else []
        elif "curl -" in block or "BASE=" in block or re.search("^sandbox ", block, re.MULTILINE):
            blocks.append(block)
    return blocks


def script_of(blocks, base_url, demo):
    """The blocks as one script, with the address of a stack and the keys of its demo."""
    script = PREAMBLE + "".join(blocks)
    for address in (PRINTED_ADDRESS, *EXAMPLE_ADDRESSES):
        script = script.replace(address, base_url)
    for example, name in EXAMPLE_VALUES.items():
        script = script.replace(example, demo[name])
    return script


def run(binary, blocks):
    """Runs the blocks as one script. Returns its output and the number of answers by status."""
    with tempfile.TemporaryDirectory() as directory:
        with stack(binary, "--data-dir", f"{directory}/.local") as (base_url, _):
            demo = json.loads(pathlib.Path(directory, ".local", "demo.json").read_text())
            return paste(script_of(blocks, base_url, demo), directory)


def paste(script, directory):
    """Runs a script in a directory. Returns its output and the number of answers by status."""
    done = subprocess.run(["bash", "-c", script], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout, collections.Counter(int(status) for status in re.findall(r"status (\d+)", done.stderr))


def answers(printed):
    """The JSON values in an output, one behind the other."""
    decoder, found, rest = json.JSONDecoder(), [], printed.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        found.append(value)
        rest = rest[end:].strip()
    return found


class Integrator:
    """A coach whom the sandbox has not seen, with keys and an endpoint at the stack's receiver."""

    def __init__(self, base_url):
        self.base_url = base_url
        session = call(f"{base_url}/_local/session", {"coach_id": "integrator"})["token"]
        self.bearer = f"Bearer {session}"
        url = f"{base_url}/_local/receiver/hooks/guide"
        hook = {"url": url, "events": ["new_client"], "payload_mode": "identifiers"}
        crm = {"name": "CRM", "scope": "crm", "permissions": CRM_PERMISSIONS}
        self.values = {
            "partner_key": self.settings("keys", {"name": "Partner", "scope": "partner"})["key"],
            "crm_key": self.settings("keys", crm)["key"],
            "endpoint_id": self.settings("webhooks", hook)["id"],
        }

    def settings(self, path, body):
        return call(f"{self.base_url}/settings/{path}", body, authorization=self.bearer)

    def received(self):
        """The types of the events that the receiver has."""
        return [one["type"] for one in call(f"{self.base_url}/_local/receiver.json")]


def check_sandbox(binary):
    """The guide to the sandbox: what it says of its answers holds, and its receiver gets the events."""
    blocks = commands((PAGES / "sandbox.md").read_text())
    [removal] = [number for number, block in enumerate(blocks) if "-X DELETE" in block]
    blocks.insert(removal, SETTLE)
    with sandbox(binary) as (base_url, _), tempfile.TemporaryDirectory() as directory:
        integrator = Integrator(base_url)
        printed, statuses = paste(script_of(blocks, base_url, integrator.values), directory)
        received = integrator.received()
        call(f"{base_url}/_local/clock", {"advance_s": REMOVAL_S})
        key = integrator.values["partner_key"]
        removed = call(f"{base_url}/v1/test/data", x_api_key=key)
        clients = call(f"{base_url}/v1/clients", x_api_key=key)["clients"]
    # Without the Partner API, without the CRM, and without a place for a client.
    check("sandbox", statuses, {402: 1, 403: 1, 409: 1})
    found = answers(printed)
    assert (found[0]["mode"], found[0]["scope"]) == ("test", "partner"), found[0]
    results = [one for answer in found for one in answer.get("data", []) if "result" in one]
    assert [one["result"] for one in results] == ["stored"] * 4, results
    evaluations = [answer for answer in found if "evaluated" in answer]
    assert [one["events"] for one in evaluations] == [0, 1], evaluations
    assert evaluations[-1] == {"evaluated": 1, "events": 1, "more": False}, evaluations
    codes = [answer["code"] for answer in found if "code" in answer]
    assert codes == ["partner_api_not_entitled", "crm_not_entitled", "plan_limit_reached"], codes
    bounced, greeted = [answer for answer in found if "welcome_email_sent" in answer]
    assert bounced["welcome_email_sent"] is False and bounced["temp_password"] and bounced["intake_url"], bounced
    assert greeted["welcome_email_sent"] is True and greeted["email"].startswith("grace-"), greeted
    [mail] = [one for answer in found for one in answer.get("data", []) if "subject" in one]
    assert mail.keys() == {"to", "subject", "text", "html", "sent_at"} and mail["to"] == greeted["email"], mail
    assert found[-1]["status"] == "running" and found[-1]["job"] == found[-2]["job"], found[-2:]
    assert removed == {"job": found[-1]["job"], "status": "done"} and clients == [], (removed, clients)
    assert received.count("check_in_inactivity") == 1 and received.count("compliance_drop") == 1, received


def check(what, statuses, refusals):
    refused = {status: count for status, count in statuses.items() if status >= 400}
    assert refused == refusals, f"{what}: {dict(statuses)}"
    print(f"{what}: {statuses.total()} commands, {sum(refusals.values())} refused as they say", flush=True)


def main(binary):
    began = time.monotonic()
    readme = (ROOT / "README.md").read_text()
    tour = readme[readme.index("## A tour") : readme.index("## Where to read on")]
    printed, statuses = run(binary, commands(tour))
    # A taken address and a taken time.
    check("tour", statuses, {409: 2})
    of_the_sweep = ['"daily_log_inactivity"', "Three days without a log"]
    for text in ["email_taken", "slot_unavailable", '"status":"cancelled"', "booking.cancelled", *of_the_sweep]:
        assert text in printed, f"{text}: {printed}"

    guides = [block for name in GUIDES for block in commands((PAGES / f"{name}.md").read_text())]
    printed, statuses = run(binary, guides)
    # The error that the guide to errors shows.
    check("guides", statuses, {400: 1})
    assert '"status":"lost"' in printed and '"previousStartsAt"' in printed, printed
    assert '"has_more":false' in printed and '"external_id":"patient-1815"' in printed, printed
    # Each script ran twice.
    assert re.search(r"evt_\S+ new_client\n", printed), printed
    assert len(re.findall(r"\d+ clients, up to ", printed)) == 2, printed

    # A stack for each guide: one of them advances the clock and injects faults.
    printed, statuses = run(binary, commands((OPERATORS / "settings-api.md").read_text()))
    check("settings-api", statuses, {})
    assert '"delivery_id"' in printed and '"status":"delivered"' in printed, printed

    printed, statuses = run(binary, commands((OPERATORS / "local-stack.md").read_text()))
    # A function dies.
    check("local-stack", statuses, {500: 1})
    assert '"days_inactive"' in printed and '"client_id"' in printed, printed

    check_sandbox(binary)
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
