"""A receiver for webhooks. The guide to verifying shows it from the first blank line on; tests/verification runs it."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
inbox = Path("inbox")
lock = threading.Lock()
worker = ThreadPoolExecutor(max_workers=1)


def store(event_id, body):
    """Stores the event. Returns False if it is stored already."""
    file, draft = inbox / event_id, inbox / "draft"
    with lock:
        if file.exists():
            return False
        draft.write_bytes(body)
        draft.replace(file)  # atomic
        return True


def work(event_id, event):
    print("accepted", event_id, event["type"], flush=True)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))  # the raw bytes
        try:
            event = webhook.verify(body, self.headers)
        except (WebhookVerificationError, ValueError):  # ValueError: a malformed header
            return self.answer(400)
        event_id = self.headers["webhook-id"]
        if store(event_id, body):
            worker.submit(work, event_id, event)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()


inbox.mkdir(exist_ok=True)
ThreadingHTTPServer(("", int(os.environ.get("PORT", 9000))), Receiver).serve_forever()
