"""A stack to run scripts against, and how to call it."""

import json
import subprocess
import urllib.request
from contextlib import contextmanager


@contextmanager
def stack(binary):
    """A stack that keeps nothing, on free ports: the addresses of its API and of its AWS endpoint."""
    options = ["--port", "0", "--aws-port", "0", "--no-demo", "--ephemeral"]
    process = subprocess.Popen([binary, *options], stdout=subprocess.PIPE, text=True)
    try:
        ready = next(line for line in process.stdout if line.startswith("ready "))
        addresses = json.loads(ready.removeprefix("ready "))
        yield addresses["base_url"], addresses["aws_url"]
    finally:
        process.terminate()
        process.wait()


def call(url, body=None, **headers):
    """GET, or POST of JSON; the JSON of the answer. Underscores in names of headers stand for hyphens."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None
    if body is not None:
        data, headers = json.dumps(body).encode(), {"content-type": "application/json"} | headers
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
        return json.load(answer)
