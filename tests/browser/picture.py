"""Takes the pictures of the portal in README.md, one in each colour scheme: a coach with keys, a webhook that works and
one that fails.

Takes the path of the stack under test. Runs with PYTHONPATH=tests. Needs what portal.py needs.
"""

import os
import shutil
import sys

from local_stack import stack
from playwright.sync_api import sync_playwright
from portal_kit import Kit, Mouse, Stack, receiver

FOLDER = "functions/portal/pictures"
WIDTH, HEIGHT = 1_080, 910
HOUR_S = 3_600
# The messages of each client. The clients write one after the other, an hour apart.
MESSAGES = (3, 5, 2, 6, 9, 14, 11, 8, 12, 10, 7, 6, 9, 4)


def prepare(kit):
    """Makes a coach whose overview has something to show."""
    coach = kit.coach(name="Ada Lovelace")
    coach.api("POST", "/keys", {"scope": "partner", "name": "Patient records"})
    coach.api("POST", "/keys", {"scope": "crm", "name": "Booking desk", "permissions": ["contacts.read", "bookings.write"]})
    coach.webhook(f"{kit.receiver.url}/records", events=["new_client", "message_received"], description="Patient records")
    coach.webhook(f"{kit.receiver.url}/broken", events=["message_received"], description="Newsletter")
    clients = coach.clients(*(f"client-{number}" for number in range(len(MESSAGES))))
    for client, number in zip(clients, MESSAGES):
        kit.stack.advance(HOUR_S)
        if client == clients[-1]:
            kit.receiver.answers["/broken"] = 500
        coach.messages(client, number)
    return coach


def main(binary):
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    os.makedirs(FOLDER, exist_ok=True)
    with stack(binary) as (base_url, aws_url), receiver() as hooks, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        kit = Kit(Stack(base_url, aws_url), hooks, browser)
        coach = prepare(kit)
        with kit.visit(coach, Mouse) as visitor:
            visitor.open("/")
            visitor.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
            for scheme in ("light", "dark"):
                visitor.page.emulate_media(color_scheme=scheme)
                visitor.page.screenshot(path=f"{FOLDER}/portal-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
