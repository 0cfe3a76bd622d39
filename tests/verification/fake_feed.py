"""A feed of events with faults that a healthy service does not show."""

import contextlib
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = 3


def event(number):
    """An event in contact-details mode. Not ASCII: encoding the body again has to give the same bytes."""
    client = {"email": f"c{number}@example.com", "id": f"client_{number}", "name": "Zoë 张伟 🙂", "phone": None}
    at = f"2026-01-01T00:00:{number % 60:02}.000Z"
    data = {"client": client, "created_at": at, "source": "partner_api", "ratio": 0.5}
    return {"id": f"evt_{number:032x}", "type": "new_client", "timestamp": at, "data": data}


class FakeFeed:
    """Serves `events` at `/v1/events`. `faults` are answers to the next requests: a status and headers, or None to
    close the connection. A `cursor` is a number of events."""

    def __init__(self):
        self.events, self.faults, self.queries, self.keys = [], [], [], []

    def emit(self, count):
        new = [event(len(self.events) + i) for i in range(count)]
        self.events.extend(new)
        return [(one["id"], one["type"]) for one in new]

    def answer(self, query):
        """The page for a query."""
        start = len(self.events) if "since" in query else int(query.get("cursor", 0))
        end = min(start + PAGE, len(self.events))
        return {"data": self.events[start:end], "next_cursor": str(end), "has_more": end < len(self.events)}


@contextlib.contextmanager
def fake_feed():
    """Starts a feed. Yields it and its base URL."""
    feed = FakeFeed()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            url = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(url.query))
            feed.queries.append(query)
            feed.keys.append(self.headers["Authorization"])
            fault = feed.faults.pop(0) if feed.faults else (200, {})
            if fault is None:
                return self.connection.close()
            status, headers = fault
            body = feed.answer(query) if status == 200 else {"code": "a_code", "error": "A reason.", "request_id": "r"}
            assert url.path == "/v1/events", self.path
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(body, ensure_ascii=False).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield feed, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
