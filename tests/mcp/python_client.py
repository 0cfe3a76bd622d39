"""The official Python client in each of its modes: the lists of both keys, one call of every tool, and refusals."""

import datetime
import itertools
import warnings

from assistant import MODES, assistant, refusal
from mcp import MCPDeprecationWarning
from scene import CLIENT, CLIENT_EMAIL, CLIENT_NAME, CONTACT, CONTACT_EMAIL, HEALTH_NOTES
from times import free_times, next_week
from tools import CRM_TOOLS, DESTRUCTIVE, PARTNER_TOOLS, TOOLS_WITHOUT_BOOKING, WRITES

numbers = itertools.count(1)


async def check_list(one, names):
    """Checks that exactly these tools are listed, in this order, with the hints that hosts act on."""
    listed = await one.tools()
    assert list(listed) == names, f"listed: {list(listed)}, not {names}"
    for name, tool in listed.items():
        hints, schema = tool.annotations, tool.input_schema
        assert tool.title and tool.description and tool.output_schema, f"{name}: {tool}"
        assert (schema["type"], schema["additionalProperties"]) == ("object", False), f"{name}: {schema}"
        assert hints.open_world_hint is False and bool(hints.read_only_hint) != (name in WRITES), f"{name}: {hints}"
        if name in WRITES:
            assert hints.idempotent_hint is True, f"{name}: {hints}"
            assert hints.destructive_hint is (name in DESTRUCTIVE), f"{name}: {hints}"


async def call_partner_tools(one):
    """Calls every tool of a partner key, as somebody who looks after a client."""
    number = next(numbers)
    me = await one.call("whoami")
    assert (me["scope"], me["mode"], me["entitled"]) == ("partner", "live", True), me
    assert me["workspace"]["time_zone"] and datetime.date.fromisoformat(me["today"]), me
    # Part of a name, in another case.
    [found] = (await one.call("find_clients", name="LOVEL"))["clients"]
    assert (found["client_id"], found["full_name"]) == (CLIENT, CLIENT_NAME), found
    [found] = (await one.call("find_clients", name="zolc"))["clients"]
    assert found["full_name"] == "Zoë Żółć", found
    client = await one.call("get_client", client_id=CLIENT)
    assert client["email"] == CLIENT_EMAIL and HEALTH_NOTES not in str(client), client
    compliance = await one.call("get_client_compliance", client_id=CLIENT, window_days=14)
    assert (compliance["window_days"], compliance["doses_logged"]) == (14, 2), compliance
    assert (await one.call("list_client_check_ins", client_id=CLIENT))["count"] == 1
    assert (await one.call("list_client_daily_logs", client_id=CLIENT, limit=1))["count"] == 1

    wanted = {"email": f"new-{number}@example.com", "full_name": f"New {number}", "goals": "Sleep"}
    made = await one.call("create_client", **wanted)
    assert not {"temp_password", "intake_url"} & made.keys(), made
    assert await one.replay("create_client", **wanted) == made, "a repeat makes no second client"
    reference = f"reference-{number}"
    changed = await one.call("update_client", client_id=made["client_id"], is_active=False, external_id=reference)
    assert (changed["is_active"], changed["external_id"]) == (False, reference), changed
    assert "health_notes" not in changed, changed
    events = (await one.call("list_events", types="new_client", limit=1))["data"]
    assert events[0]["data"]["client"]["id"] == made["client_id"], events


async def call_crm_tools(one):
    """Calls every tool of a crm key: a lead, an opportunity, a call that is booked, moved and cancelled."""
    number = next(numbers)
    assert (await one.call("whoami"))["scope"] == "crm"
    for query in ({"name": "bucher"}, {"email": CONTACT_EMAIL}):
        [found] = (await one.call("find_contacts", **query))["data"]
        assert (found["id"], found["email"]) == (CONTACT, CONTACT_EMAIL), found
    lead = {"name": f"Lead {number}", "email": f"lead-{number}@example.com"}
    contact = (await one.call("create_contact", **lead))["contact"]
    assert (await one.call("create_contact", **lead))["contact"]["id"] == contact["id"], "it matches by e-mail"
    contact = (await one.call("update_contact", id=contact["id"], name="Grace Hopper"))["contact"]
    assert (await one.call("get_contact", id=contact["id"]))["contact"] == contact

    wanted = {"contactId": contact["id"], "valueCents": 120_000, "idempotency_key": f"sale-{number}"}
    made = await one.call("create_opportunity", **wanted)
    assert await one.replay("create_opportunity", **wanted) == made, "a repeat makes no second opportunity"
    opportunity = made["opportunity"]["id"]
    changed = (await one.call("update_opportunity", id=opportunity, stage="qualified"))["opportunity"]
    assert (await one.call("get_opportunity", id=opportunity))["opportunity"] == changed
    assert changed in (await one.call("find_opportunities", limit=50))["data"]

    calendar = next(each for each in (await one.call("list_calendars"))["data"] if each["priceCents"] == 0)
    scene = {"leadId": contact["id"], "calendarId": calendar["id"]}
    monday = await next_week(one)
    times = await free_times(one, scene, monday)
    wanted = scene | times[0] | {"idempotency_key": f"call-{number}"}
    made = await one.call("create_booking", **wanted)
    assert await one.replay("create_booking", **wanted) == made, "a repeat books no second time"
    await one.fails("create_booking", "idempotency_payload_mismatch", **(wanted | times[1]))
    await one.fails("create_booking", "slot_unavailable", **(wanted | {"idempotency_key": f"other-{number}"}))
    booking = {"id": made["booking"]["id"], "leadId": contact["id"]}
    moved = await one.call("reschedule_booking", **booking, **times[1])
    assert moved["booking"]["time"] == times[1]["time"], moved
    await one.call("reschedule_booking", **booking, **times[1])
    assert (await one.call("get_booking", id=booking["id"]))["booking"] == moved["booking"]
    assert (await one.call("find_bookings", leadId=contact["id"]))["data"] == [moved["booking"]]
    for _ in range(2):
        assert (await one.call("cancel_booking", **booking))["booking"]["status"] == "cancelled"
    assert times[0] in await free_times(one, scene, monday), "the time is free again"

    [workflow] = (await one.call("list_workflows"))["data"]
    assert workflow["name"] == "Welcome", workflow
    events = [event["type"] for event in (await one.call("list_events", limit=3))["data"]]
    assert events == ["booking_cancelled", "booking_rescheduled", "booking_created"], events


async def check_errors(one, other_scope):
    """Calls tools that are not there, and one with an argument that a model can mend."""
    for tool in ("no_such_tool", "create_login_link", other_scope):
        await one.is_unknown(tool)
    assert "nobody" in await one.fails("whoami", "invalid_request", nobody=1)


async def check_refusals(scene):
    """Checks that no key, a wrong one and a revoked one are 401 at the first request, without a hint to a sign-in."""
    keys = (None, "nonsense", scene.revoked_key())
    for mode in MODES:
        for key in keys:
            answer = await refusal(scene.url, key, mode)
            header = answer.headers.get("www-authenticate", "")
            assert answer.status_code == 401 and header == 'Bearer realm="partner-api"', f"{mode}: {answer} {header}"


async def check(scene):
    """Checks each mode with keys of its own, and prints a line for each check."""
    for mode, version in MODES.items():
        async with assistant(scene.url, scene.partner_key(), mode) as one:
            await check_list(one, PARTNER_TOOLS)
            await call_partner_tools(one)
            assert one.called == set(PARTNER_TOOLS), f"not called: {set(PARTNER_TOOLS) - one.called}"
            await check_errors(one, "find_contacts")
            await one.fails("get_client", "not_found", client_id="nobody")
            await check_ping(one, mode)
        async with assistant(scene.url, scene.crm_key(), mode) as one:
            await check_list(one, CRM_TOOLS)
            await call_crm_tools(one)
            assert one.called == set(CRM_TOOLS), f"not called: {set(CRM_TOOLS) - one.called}"
            await check_errors(one, "find_clients")
        async with assistant(scene.url, scene.key_without_booking(), mode) as one:
            await check_list(one, TOOLS_WITHOUT_BOOKING)
        counts = f"{len(PARTNER_TOOLS)} and {len(CRM_TOOLS)} tools"
        print(f"python client, mode {mode}: revision {version}, {counts} called", flush=True)
    await check_refusals(scene)
    print("python client: 401 without a key, with a wrong one and with a revoked one, in each mode", flush=True)


async def check_ping(one, mode):
    """Pings, which only the handshake's revisions have."""
    if mode == "legacy":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await one.client.send_ping()
