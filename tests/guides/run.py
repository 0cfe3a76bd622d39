"""Runs the commands of the README's tour and of the guides in order, as a reader pastes them, against a stack with its
demo. Each is answered, and refused only if the text says so.

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

from local_stack import stack

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
# The address and the keys in the served guides: the stack's, and those of its demo.
EXAMPLE_ADDRESS = "https://api.example.com"
EXAMPLE_KEYS = {"svc_live_...": "partner_key", "crm_live_...": "crm_key"}


def commands(text):
    """The blocks of shell commands that call the API, also by a function of the page, or set its URL, and the scripts in
    Python."""
    blocks = []
    for language, block in re.findall(r"```(sh|python)(?: [^\n]*)?\n(.*?)```", text, re.DOTALL):
        if language == "python":
            script = f"BASE=$BASE KEY=$KEY python3 - <<'SCRIPT'\n{block}SCRIPT\n"
            # The second run finds what the first one stored.
            blocks += [script, script] if "import" in block else []
        elif "curl -" in block or "BASE=" in block or block.startswith("sandbox "):
            blocks.append(block)
    return blocks


def script_of(blocks, base_url, demo):
    """The blocks as one script, with the address of a stack and the keys of its demo."""
    script = PREAMBLE + "".join(blocks).replace(PRINTED_ADDRESS, base_url).replace(EXAMPLE_ADDRESS, base_url)
    for example, name in EXAMPLE_KEYS.items():
        script = script.replace(example, demo[name])
    return script


def run(binary, blocks):
    """Runs the blocks as one script. Returns its output and the number of answers by status."""
    with tempfile.TemporaryDirectory() as directory:
        with stack(binary, "--data-dir", f"{directory}/.local") as (base_url, _):
            demo = json.loads(pathlib.Path(directory, ".local", "demo.json").read_text())
            script = script_of(blocks, base_url, demo)
            done = subprocess.run(["bash", "-c", script], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout, collections.Counter(int(status) for status in re.findall(r"status (\d+)", done.stderr))


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
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
