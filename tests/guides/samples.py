"""Runs every sample of the reference against a sandbox with its demo, as a reader pastes it: in curl, Python, Node, and
PHP where its interpreter is installed. Each is answered with a status of success. The reference of a sandbox has all
operations.

Takes the path of the stack under test. Runs with PYTHONPATH=tests, by a Python that has `requests`. Needs bash, curl and
Node.
"""

import collections
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from local_stack import call, sandbox

# What runs a sample of each language, and the end of its file's name.
RUN = {"sh": ("bash", ".sh"), "python": (sys.executable, ".py"), "js": ("node", ".mjs"), "php": ("php", ".php")}
# Ids in the examples of the OpenAPI document.
CLIENT = "client_019a9f0c6d5e7b3c8f1a2b3c4d5e6f70"
KEY = "key_6f1ed002ab5595859014ebf0951522d9"
ENDPOINT = "we_019a9f0c6d5e7b3c8f1a2b3c4d5e6f71"
DELIVERY = "dlv_019a9f0c6d5e8b3c8f1a2b3c4d5e6f73"
CONTACT, OPPORTUNITY, CALENDAR, BOOKING = (f"019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f7{end}" for end in "4567")
# How samples make an idempotency key. Each run of a sample needs a key of its own.
MAKES_KEY = {"sh": "$(uuidgen)", "python": "uuid.uuid4()", "js": "crypto.randomUUID()", "php": "random_bytes(16)"}
UUIDGEN = "#!/bin/sh\ncat /proc/sys/kernel/random/uuid\n"
# When examples book, and the time to which they move a booking.
DATE, TIMES = "2026-11-23", ("09:30", "11:00")
# After this one, the workspace takes no writes for a while.
REMOVES_ALL = "wipeTestData"
# Operations that change an endpoint so that later samples could not use it.
SPOILS_ENDPOINT = {"deleteEndpoint", "updateEndpoint"}


class Records:
    """Creates the records that samples name."""

    def __init__(self, base_url, demo):
        self.base_url, self.demo = base_url, demo
        self.session = call(f"{base_url}/_local/session", {"coach_id": "coach_demo"})["token"]
        self.numbers = itertools.count(1)
        self.calendar = self.crm("calendars")["data"][0]["id"]
        self.partner("clients", {"email": self.address(), "send_welcome": False})

    def unique(self):
        return f"sample-{next(self.numbers)}"

    def address(self):
        return f"{self.unique()}@example.com"

    def as_caller(self, path, key, body=None):
        return call(f"{self.base_url}/{path}", body, Authorization=f"Bearer {key}", Idempotency_Key=self.unique())

    def partner(self, path, body=None):
        return self.as_caller(f"v1/{path}", self.demo["partner_key"], body)

    def crm(self, path, body=None):
        return self.as_caller(f"v1/crm/{path}", self.demo["crm_key"], body)

    def settings(self, path, body=None):
        return self.as_caller(f"settings/{path}", self.session, body)

    def contact(self):
        return self.crm("contacts", {"name": "Grace Hopper", "email": self.address()})["contact"]["id"]

    def free_time(self):
        calendars = self.crm("bookings/availability", {"leadId": self.contact(), "calendarId": self.calendar})["calendars"]
        return [(day["date"], slot) for day in calendars[0]["days"] for slot in day["slots"]][-1]

    def booking(self, contact):
        date, slot = self.free_time()
        body = {"leadId": contact, "calendarId": self.calendar, "date": date, "time": slot}
        return self.crm("bookings", body)["booking"]["id"]

    def endpoint(self):
        body = {"url": "https://hooks.example.com/coaching", "events": [], "payload_mode": "identifiers"}
        return self.settings("webhooks", body)["id"]

    def delivery(self):
        """A delivery to the demo's endpoint. One appears a moment after its event."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if deliveries := self.settings(f"webhooks/{self.demo['endpoint_id']}/deliveries?status=delivered")["data"]:
                return deliveries[0]["id"]
        raise AssertionError("the demo's endpoint has no delivery")

    def fill_in(self, sample, operation):
        """The sample with records that exist and values that are unused."""
        for address in ("grace@example.com", "ada@example.com"):
            sample = sample.replace(address, self.address())
        sample = sample.replace("patient-1815", self.unique())
        contact = self.contact() if CONTACT in sample or BOOKING in sample else None
        if CLIENT in sample:
            sample = sample.replace(CLIENT, self.partner("clients", {"email": self.address()})["client_id"])
        if KEY in sample:
            key = self.settings("keys", {"name": self.unique(), "scope": "partner"})["id"]
            sample = sample.replace(KEY, key)
        if ENDPOINT in sample:
            endpoint = self.endpoint() if operation in SPOILS_ENDPOINT else self.demo["endpoint_id"]
            sample = sample.replace(ENDPOINT, endpoint)
        if DELIVERY in sample:
            sample = sample.replace(DELIVERY, self.delivery())
        if OPPORTUNITY in sample:
            opportunity = self.crm("opportunities", {"contactId": self.contact(), "name": "Twelve weeks"})
            sample = sample.replace(OPPORTUNITY, opportunity["opportunity"]["id"])
        if BOOKING in sample:
            sample = sample.replace(BOOKING, self.booking(contact))
        if contact:
            sample = sample.replace(CONTACT, contact)
        if DATE in sample:
            date, slot = self.free_time()
            sample = re.sub("|".join(TIMES), slot, sample.replace(DATE, date))
        return sample.replace(CALENDAR, self.calendar)


def samples_of(base_url, document):
    """Each operation's id with its samples by language, from the pages of the reference."""
    for tag in document["tags"]:
        name = re.sub(r"\W+", "-", tag["name"].lower())
        try:
            with urllib.request.urlopen(f"{base_url}/docs/reference/{name}.md") as answer:
                page = answer.read().decode()
        except urllib.error.HTTPError:
            # The tags of events are in the event catalog.
            assert tag["name"].endswith(" events"), tag["name"]
            continue
        for section in page.split("\n## ")[1:]:
            method, path = re.search(r"\n`([A-Z]+) (\S+)`\n", section).groups()
            operation = document["paths"][path][method.lower()]
            samples = dict(re.findall(r"\n```(sh|python|js|php)\n(.*?)```", section, re.DOTALL))
            answers_json = any(
                "application/json" in answer.get("content", {})
                for status, answer in operation["responses"].items()
                if status.startswith("2")
            )
            assert sorted(samples) == (sorted(RUN) if answers_json else []), operation["operationId"]
            yield operation["operationId"], samples


def run(language, sample, environment):
    """Runs a sample and returns the status of its answer."""
    interpreter, ending = RUN[language]
    with tempfile.NamedTemporaryFile("w", suffix=ending) as file:
        file.write(sample)
        file.flush()
        done = subprocess.run([interpreter, file.name], env=environment, capture_output=True, text=True, timeout=60)
    output = done.stdout.strip()
    statuses = re.findall(r"^(?:HTTP/1.1 )?(\d{3}) ", output)
    assert done.returncode == 0 and len(statuses) == 1, f"{sample}\n{output}\n{done.stderr}"
    return int(statuses[0]), output


def main(binary):
    began = time.monotonic()
    languages = [language for language, (interpreter, _) in RUN.items() if shutil.which(interpreter)]
    if "php" in languages and "curl" not in subprocess.run(["php", "-m"], capture_output=True, text=True).stdout:
        languages.remove("php")
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as directory:
        if not shutil.which("uuidgen"):
            pathlib.Path(directory, "uuidgen").write_text(UUIDGEN)
            pathlib.Path(directory, "uuidgen").chmod(0o755)
            os.environ["PATH"] += f":{directory}"
        with sandbox(binary, "--data-dir", f"{directory}/.local") as (base_url, _):
            records = Records(base_url, json.loads(pathlib.Path(directory, ".local", "demo.json").read_text()))
            operations = list(samples_of(base_url, call(f"{base_url}/openapi.json")))
            assert [operation for operation, _ in operations][-2:] == [REMOVES_ALL, "readWipe"], "others come after it"
            for operation, samples in operations:
                for language in [language for language in languages if language in samples]:
                    assert ("Idempotency-Key" in samples[language]) == (MAKES_KEY[language] in samples[language]), samples[language]
                    sample = records.fill_in(samples[language], operation)
                    key = "crm_key" if "/v1/crm/" in sample else "partner_key"
                    keys = {"KEY": records.demo[key], "SESSION": records.session}
                    status, output = run(language, sample, os.environ | keys)
                    assert 200 <= status < 300, f"{operation} in {language}: {sample}\n{output}"
                    counts[language] += 1
    assert len(languages) >= 3 and len(set(counts.values())) == 1, counts
    skipped = "" if "php" in languages else " (PHP with curl is not installed)"
    print(f"samples of the reference: {dict(counts)}{skipped}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
