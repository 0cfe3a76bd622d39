"""Starts a local stack for scripts and calls it."""

import json
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

# A script that is ended ends its stack, too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

EMPTY = ("--no-demo", "--ephemeral")
# Without fixed addresses, the operation that lists them is an unknown path.
ADDRESSES = "203.0.113.7,2001:db8:7::/48"
# Longer than the removal of a workspace's test data takes.
REMOVAL_S = 60


@contextmanager
def stack(binary, *options):
    """Starts a quiet stack on free ports, by default empty and ephemeral. Yields the URLs of its API and AWS endpoint."""
    command = [binary, "--port", "0", "--aws-port", "0", "--log", "warn", *(options or EMPTY)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        ready = next(line for line in process.stdout if line.startswith("ready "))
        addresses = json.loads(ready.removeprefix("ready "))
        yield addresses["base_url"], addresses["aws_url"]
    finally:
        process.terminate()
        process.wait()


def sandbox(binary, *options):
    """Starts a sandbox, which has all operations, as `stack` starts a live stack."""
    return stack(binary, "--mode", "test", "--parameter", f"WebhookAddresses={ADDRESSES}", *(options or EMPTY))


def call(url, body=None, method=None, **headers):
    """Sends a GET, a POST of JSON, or another `method`, and returns the answer's JSON. Underscores in header names
    become hyphens."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None
    if body is not None:
        data, headers = json.dumps(body).encode(), {"content-type": "application/json"} | headers
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method)) as answer:
        return json.load(answer)
