"""A stack to run scripts against, and how to call it."""

import json
import subprocess
import urllib.request
from contextlib import contextmanager


@contextmanager
def stack(binary, *options):
    """A stack on free ports, which is empty and keeps nothing unless options say otherwise: the addresses of its API and of its AWS
    endpoint."""
    command = [binary, "--port", "0", "--aws-port", "0", *(options or ["--no-demo", "--ephemeral"])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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
