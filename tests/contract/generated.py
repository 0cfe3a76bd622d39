"""A client generated from the OpenAPI document, without a warning, against the service: from OpenAPI 3.1 against a
sandbox, whose document has all operations, and from OpenAPI 3.0 against a live stack, whose document lacks the
sandbox's.

Takes the path of the stack under test, and the document's path on it. Runs with PYTHONPATH=tests. Needs
`openapi-python-client` from PyPI.
"""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import time
from uuid import UUID

import crm_world
import httpx
from local_stack import call, sandbox, stack
from mistakes import mistakes_with_everything
from request_log import Exchange, RequestLog
from trial import Refused, try_the_sandbox
from world import publish_facts

OF_SANDBOX = "/openapi.json"
PACKAGE = "partner_api_client"


def generate(document, directory):
    """Generates the package. The generator warns of anything that it would omit, and a warning fails it."""
    source = directory / "openapi.json"
    source.write_text(json.dumps(document))
    scripts = sysconfig.get_path("scripts")
    command = [pathlib.Path(scripts) / "openapi-python-client", "generate", "--path", source]
    command += ["--output-path", directory / PACKAGE, "--meta", "none", "--fail-on-warning"]
    # The generator formats its code with a tool that is installed beside it.
    environment = os.environ | {"PATH": f"{scripts}:{os.environ['PATH']}"}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(directory))


class Caller:
    """Calls operations by their ids with a token. `noted` is called with each answer of the client's transport."""

    def __init__(self, base_url, token, noted=None):
        client = importlib.import_module(PACKAGE).AuthenticatedClient
        noting = {"event_hooks": {"response": [noted]}} if noted else {}
        self.client = client(base_url=base_url, token=token, raise_on_unexpected_status=True, httpx_args=noting)

    def __call__(self, operation, *path, **arguments):
        return importlib.import_module(f"{PACKAGE}.api.{operation}").sync(*path, client=self.client, **arguments)


class Sender:
    """The client as the sender of the requests that `mistakes` makes. The models do not forbid the mistakes."""

    def __init__(self, base_url, models):
        self.base_url, self.models, self.exchange = base_url, models, None

    def create(self, key, email, name, reference):
        draft = self.models.CreateClient(email=email, full_name=name, send_welcome=False)
        return self.send(key, "clients.create_client", body=draft, idempotency_key=reference)

    def read(self, key, text=""):
        """Reads the clients from a cursor that no answer gave."""
        return self.send(key, "clients.list_clients", cursor=text)

    def read_client(self, key, client):
        return self.send(key, "clients.read_client", client)

    def free_time(self, key, lead, calendar):
        wanted = self.models.FindTimes(lead_id=UUID(lead), calendar_id=UUID(calendar))
        exchange = self.send(key, "crm_bookings.find_times", body=wanted)
        [found] = self.models.Availability.from_dict(json.loads(exchange.answer)).calendars
        return next((day.date, day.slots[0]) for day in found.days if day.slots)

    def book(self, key, lead, calendar, time, reference):
        date, time = time
        wanted = self.models.CreateBooking(lead_id=UUID(lead), calendar_id=UUID(calendar), date=date, time=time)
        return self.send(key, "crm_bookings.create_booking", body=wanted, idempotency_key=reference)

    def find_request(self, key, request_id):
        return self.send(key, "key.list_own_requests", request_id=request_id)

    def send(self, key, operation, *path, **arguments):
        """Calls an operation. Returns the exchange, whose code the client understands."""
        understood = Caller(self.base_url, key.secret, self.note)(operation, *path, **arguments)
        code = understood.code if isinstance(understood, self.models.Error) else None
        assert code == self.exchange.code, f"{understood}, but {self.exchange}"
        return self.exchange

    def note(self, response):
        request, answer = response.request, response.read().decode()
        sent = (request.method, str(request.url), request.headers, request.content.decode())
        self.exchange = Exchange(*sent, response.status_code, response.headers, answer)


def make_mistakes(base_url, aws_url, models):
    session = call(f"{base_url}/_local/session", {"coach_id": crm_world.COACH})["token"]
    log = RequestLog(base_url, aws_url, f"Bearer {session}")
    sender = Sender(base_url, models)
    mistakes_with_everything(log, sender, crm_world.record_id("contact", 0), crm_world.CALENDAR)
    log.check("generated client")


def play(base_url):
    """Calls the settings, the partner routes and the CRM."""
    models = importlib.import_module(f"{PACKAGE}.models")

    def caller(coach, scope):
        session = call(f"{base_url}/_local/session", {"coach_id": coach})["token"]
        # A partner key without permissions gets all of its scope.
        crm_nouns = ("contacts", "opportunities", "bookings", "workflows")
        of_crm = [one for one in models.CreateKeyPermissionsType0Item if one.value.split(".")[0] in crm_nouns]
        permissions = of_crm if scope == "crm" else None
        body = models.CreateKey(name="Generated", scope=models.CreateKeyScope(scope), permissions=permissions)
        return Caller(base_url, Caller(base_url, session)("settings_keys.create_key", body=body).key)

    partner, crm = caller("partner", "partner"), caller("crm", "crm")
    assert partner("key.ping").coach.id == "partner"

    draft = models.CreateClient(email="ada@example.com", full_name="Ada Lovelace", send_welcome=False)
    made = partner("clients.create_client", body=draft, idempotency_key="one")
    assert made.email == "ada@example.com" and made.temp_password, made
    again = partner("clients.create_client", body=draft, idempotency_key="two")
    assert isinstance(again, models.Error) and again.code == models.ErrorCode.EMAIL_TAKEN, again
    change = models.UpdateClient(is_active=False)
    assert partner("clients.update_client", made.client_id, body=change).is_active is False
    assert {client.client_id for client in partner("clients.list_clients").clients} >= {"client-0", made.client_id}
    assert len(partner("client_records.list_check_ins", "client-0").check_ins) == 1
    missing = partner("clients.read_client", "nobody")
    assert isinstance(missing, models.Error) and missing.code == models.ErrorCode.NOT_FOUND, missing

    body = models.CreateContact(name="Hedy", email="hedy@example.com")
    contact = crm("crm_contacts.create_contact", body=body, idempotency_key="one").contact
    times = crm("crm_bookings.find_times", body=models.FindTimes(lead_id=contact.id)).calendars
    calendar, day = next((calendar, day) for calendar in times for day in calendar.days if day.slots)
    wanted = {"lead_id": contact.id, "calendar_id": calendar.id, "date": day.date, "time": day.slots[0]}
    booked = crm("crm_bookings.create_booking", body=models.CreateBooking(**wanted), idempotency_key="two")
    assert booked.ok and booked.booking.lead_id == contact.id, booked
    taken = crm("crm_bookings.create_booking", body=models.CreateBooking(**wanted), idempotency_key="three")
    assert taken.code == models.ErrorCode.SLOT_UNAVAILABLE, taken
    return models


def read_the_log(base_url, models):
    """Yields both kinds of attempts from the delivery log: with an answer of the receiver and without."""
    session = call(f"{base_url}/_local/session", {"coach_id": "settings"})["token"]
    coach = Caller(base_url, session)
    for url in (f"{base_url}/_local/receiver/hooks/generated", "http://127.0.0.1:9/"):
        wanted = {"url": url, "events": [models.CreateEndpointEventsItem.NEW_CLIENT]}
        body = models.CreateEndpoint(payload_mode=models.CreateEndpointPayloadMode.IDENTIFIERS, **wanted)
        endpoint = coach("settings_webhooks.create_endpoint", body=body)
        coach("settings_webhooks.test_endpoint", endpoint.id, body=models.TestEndpoint())
        call(f"{base_url}/_local/settle", {})
        (delivery,) = coach("settings_webhooks.list_deliveries", endpoint.id).data
        yield delivery.attempts[0]


def connect(base_url, key):
    """The client as `trial` wants it."""
    caller, models = Caller(base_url, key), importlib.import_module(f"{PACKAGE}.models")

    def ask(operation, model=None, body=None, **query):
        given = {"body": getattr(models, model).from_dict(body)} if model else {}
        answer = caller(f"sandbox.{operation}", **given, **query)
        if isinstance(answer, models.Error):
            raise Refused(answer.code)
        return answer

    return ask


def check_gateway(models):
    """Checks that the client parses an error that only a gateway in the cloud sends."""

    def answer(request):
        return httpx.Response(503, json={"message": "Service Unavailable"})

    caller = Caller("http://gateway.example", "key")
    caller.client.set_httpx_client(httpx.Client(base_url="http://gateway.example", transport=httpx.MockTransport(answer)))
    refused = caller("clients.list_clients")
    assert isinstance(refused, models.GatewayError) and refused.message == "Service Unavailable", refused


def main(binary, document=OF_SANDBOX):
    began, is_sandbox = time.monotonic(), document == OF_SANDBOX
    start = sandbox if is_sandbox else stack
    with start(binary) as (base_url, aws_url), tempfile.TemporaryDirectory() as directory:
        described = call(base_url + document)
        routes = [path for path in described["paths"] if path.startswith("/v1/test")]
        assert bool(routes) == is_sandbox, routes
        generate(described, pathlib.Path(directory))
        publish_facts(base_url, aws_url)
        models = play(base_url)
        make_mistakes(base_url, aws_url, models)
        answered, unanswered = read_the_log(base_url, models)
        assert answered.status_code == 204 and not answered.error, answered
        assert unanswered.error and not unanswered.status_code, unanswered
        check_gateway(models)
        if is_sandbox:
            try_the_sandbox(base_url, connect, "trial")
    mode = "a sandbox" if is_sandbox else "a live stack"
    print(f"client generated from {document} of {mode}: calls and is understood, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
