"""Flows of the portal about keys for assistants: what is chosen for them, and the texts that connect them."""

import json
from datetime import timedelta

from playwright.sync_api import expect
from portal_keys import status_of
from portal_kit import parse_time, until

CRM_READS = ["contacts.read", "opportunities.read", "bookings.read", "workflows.read"]


def connects_an_assistant(kit, hand):
    """A key for an assistant reads all, changes nothing, and ends. Its texts are shown once, like the key."""
    coach = kit.coach()
    with kit.visit(coach, hand) as visitor:
        visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
        opened = parse_time(kit.stack.now())
        visitor.open("/keys/new")
        visitor.write("Name", "Assistant")
        visitor.check("Clients")
        visitor.check("Sign clients in", "checkbox")
        visitor.check("For an assistant")
        visitor.sees("The assistant will see the names, e-mail addresses")
        visitor.sees("Its tools leave out health notes.")
        visitor.hears("goes to the company that runs the assistant")
        visitor.check("CRM")
        visitor.sees("The assistant will see your contacts, opportunities, calendars, bookings and workflows")
        visitor.hears("your contacts, opportunities, calendars")
        visitor.look("key-create-assistant-crm")
        visitor.check("Clients")
        assert chosen(visitor, "checkbox") == ["See clients", "See compliance, check-ins and daily logs"]
        visitor.look("key-create-assistant")
        visitor.double_press("Create the key")
        dialog = visitor.frame.locator("dialog[open]")
        secret = dialog.locator(".secret").inner_text()
        has_texts_for_assistants(visitor, dialog, f"{kit.stack.base_url}/mcp", secret)
        guide = dialog.get_by_role("link", name="How to connect an assistant")
        expect(guide).to_have_attribute("href", "/docs/guides/assistants")
        assert visitor.take_secret("key-secret-assistant") == secret
        visitor.sees("The key is created and works at once.")
        visitor.has_dropped(secret)
        [key] = coach.api("GET", "/keys")["keys"]
        assert (key["permissions"], key["events"]) == (["clients.read", "records.read"], None), key
        assert ends_after(key, opened, days=90), key
        assert status_of(kit, "/v1/clients", secret) == 200


def has_texts_for_assistants(visitor, dialog, address, secret):
    """Asserts that the dialog has the address, and a text for each assistant with the key. Copies one."""
    expect(dialog.get_by_text(address, exact=True)).to_be_visible()
    bearer = f"Bearer {secret}"
    server = {"url": address, "headers": {"Authorization": bearer}}
    arguments = ["-y", "mcp-remote", address, "--header", "Authorization:${AUTH_HEADER}"]
    bridge = {"command": "npx", "args": arguments, "env": {"AUTH_HEADER": bearer}}
    choices = "Server Transport: HTTP Streamable\nAuthentication: Bearer Auth"
    fields = f"Endpoint: {address}\n{choices}\nBearer Token: {secret}"
    texts = {
        "Claude Code": f'claude mcp add --transport http partner-api {address} --header "Authorization: {bearer}"',
        "Claude": {"mcpServers": {"partner-api": bridge}},
        "Cursor": {"mcpServers": {"partner-api": server}},
        "VS Code": {"servers": {"partner-api": {"type": "http"} | server}},
        "n8n": fields,
    }
    assert dialog.get_by_role("tab").all_text_contents() == list(texts)
    for title, expected in texts.items():
        visitor.press(title, "tab")
        text = dialog.get_by_role("tabpanel").get_by_label(f"The text for {title}", exact=True).text_content()
        assert (text if isinstance(expected, str) else json.loads(text)) == expected, text
        if title == "Claude":
            visitor.look("key-secret-assistant-longest")
    visitor.press("Copy: The text for n8n")
    visitor.hears("The text for n8n is copied.")
    assert visitor.page.evaluate("navigator.clipboard.readText()") == fields


def changes_what_an_assistant_may_do(kit, hand):
    """What is chosen for an assistant can be changed, and goes with the choice. A lost answer loses no texts."""
    coach = kit.coach()
    with kit.visit(coach, hand, width=390) as visitor, visitor.expecting("offline"):
        opened = parse_time(kit.stack.now())
        visitor.open("/keys/new")
        visitor.write("Name", "Assistant")
        visitor.check("For an assistant")
        visitor.check("CRM")
        visitor.check("For another system")
        expect(visitor.frame.get_by_text("The assistant will see")).to_have_count(0)
        assert (chosen(visitor, "checkbox"), "Never" in chosen(visitor, "radio")) == ([], True)
        visitor.check("For an assistant")
        visitor.press("Keys", "link")
        visitor.sees("Leave without saving?")
        with visitor.another_screen():
            visitor.press("Leave")
        visitor.follow("Create a key")
        assert "For another system" in chosen(visitor, "radio"), "a form that is opened again is new"
        visitor.write("Name", "Assistant")
        visitor.check("CRM")
        visitor.check("For an assistant")
        visitor.check("Add and change contacts", "checkbox")
        visitor.check("In 30 days")
        visitor.lose_answer("**/settings/keys")
        visitor.press("Create the key")
        visitor.sees("nothing is done twice")
        until(lambda: coach.api("GET", "/keys")["keys"])
        visitor.press("Create the key")
        visitor.sees("Connect your assistant")
        visitor.take_secret("key-secret-assistant")
        [key] = coach.api("GET", "/keys")["keys"]
        assert sorted(key["permissions"]) == sorted([*CRM_READS, "contacts.write"]), key
        assert ends_after(key, opened, days=30), key
        visitor.press("Replace")
        visitor.press("Replace the key")
        visitor.sees("For your developer")
        visitor.take_secret("key-replaced-secret")


FLOWS = [connects_an_assistant, changes_what_an_assistant_may_do]


def ends_after(key, opened, days):
    """Returns true if a key ends with the day so many days after `opened`, whatever the clocks do meanwhile."""
    middle = opened + timedelta(days=days, hours=12)
    return abs(parse_time(key["expires_at"]) - middle) <= timedelta(hours=14)


def chosen(visitor, role):
    """The labels of what is chosen in the form, without their hints."""
    labels = "boxes => boxes.map(box => box.labels[0].firstChild.textContent)"
    return visitor.frame.get_by_role(role, checked=True).evaluate_all(labels)
