"""The portal in a real browser: every flow by mouse and by keyboard alone, every state at three widths in both colour
schemes with axe, and every operation of the settings API called by some flow.

Takes the path of the stack under test, and the names of flows to run no others. Runs with PYTHONPATH=tests. Needs
Chromium, and `playwright` and `axe-playwright-python` from PyPI. With PICTURES=<folder> it keeps a picture of each state.
"""

import json
import os
import re
import shutil
import sys
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor

import portal_assistants
import portal_coaches
import portal_dates
import portal_deliveries
import portal_frames
import portal_interruptions
import portal_keys
import portal_requests
import portal_sandbox
import portal_session
import portal_traffic
import portal_webhooks
from local_stack import stack
from playwright.sync_api import sync_playwright
from portal_kit import Keyboard, Kit, Mouse, Stack, receiver

HANDS = (Mouse, Keyboard)
MODULES = (
    portal_keys,
    portal_assistants,
    portal_webhooks,
    portal_deliveries,
    portal_interruptions,
    portal_session,
    portal_frames,
    portal_coaches,
    portal_dates,
    portal_traffic,
    portal_requests,
)
# The flows by the mode of their stack.
FLOWS = {"live": [flow for module in MODULES for flow in module.FLOWS], "test": portal_sandbox.FLOWS}
# Groups of flows in the live mode. All groups are played side by side, since a flow mostly waits for its page.
GROUPS = 3


def uncalled(base_url, called):
    """The settings operations of the OpenAPI document that no flow has called."""
    with urllib.request.urlopen(f"{base_url}/openapi.json") as answer:
        paths = json.load(answer)["paths"]
    operations = {(method.upper(), path) for path, item in paths.items() if path.startswith("/settings/") for method in item}
    assert operations, "the document describes the settings"
    form = {operation: re.compile(re.sub(r"\{\w+\}", "[^/]+", operation[1])) for operation in operations}
    return {
        operation
        for operation in operations
        if not any(method == operation[0] and form[operation].fullmatch(path) for method, path in called)
    }


def play(binary, mode, names):
    """Plays flows with a stack and a browser of their own. Returns the operations called and the states looked at."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    running = stack(binary, "--no-demo", "--ephemeral", "--mode", mode)
    with running as (base_url, aws_url), receiver() as hooks, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        kit = Kit(Stack(base_url, aws_url), hooks, browser, os.environ.get("PICTURES"))
        for flow in (flow for flow in FLOWS[mode] if flow.__name__ in names):
            for hand in HANDS:
                started = time.monotonic()
                flow(kit, hand)
                print(f"  {flow.__name__} by {hand.name}: {time.monotonic() - started:.1f} s", flush=True)
        browser.close()
    return kit.called, kit.looked


def main(binary, names):
    began = time.monotonic()
    chosen = {mode: [flow.__name__ for flow in flows if not names or flow.__name__ in names] for mode, flows in FLOWS.items()}
    groups = [("live", chosen["live"][first::GROUPS]) for first in range(GROUPS)] + [("test", chosen["test"])]
    with ProcessPoolExecutor(len(groups)) as pool:
        called, looked = zip(*pool.map(play, [binary] * len(groups), *zip(*groups)))
    if not names:
        with stack(binary) as (base_url, _):
            left = uncalled(base_url, set().union(*called))
        assert not left, f"no flow calls {left}"
    seconds = time.monotonic() - began
    states = len(set().union(*looked))
    print(f"portal: {sum(map(len, chosen.values()))} flows by mouse and by keyboard, {states} states looked at, {seconds:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
