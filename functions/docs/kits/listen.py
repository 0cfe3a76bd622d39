#!/usr/bin/env python3
"""Passes the events of the Partner API on to a receiver on your machine, signed like the service's webhooks.

    export PARTNER_API_KEY=svc_live_...
    python3 listen.py --base https://api.example.com

The key needs the coach's permission to read events. Nothing has to be installed, and no public address is needed: the
script follows GET /v1/events. Python 3.9 or later.
"""

import argparse
import base64
import hashlib
import hmac
import http.client
import json
import os
import re
import secrets
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

PAGE = 100
POLL_S = 2
RECEIVER = "http://127.0.0.1:9000/"
# Later than every event: the answer is empty, and its cursor is at the end of the feed.
NO_EVENT = "9999-12-31T00:00:00Z"
RECEIVER_TIMEOUT_S = 15
RECEIVER_WAITS_S = (1, 2)
API_TIMEOUT_S = 30
MAX_WAIT_S = 60
# No connection, or an answer that is no HTTP.
NO_ANSWER = (OSError, http.client.HTTPException)


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is a failure, as it is for the service. The key goes to no other host."""

    def redirect_request(self, *_):
        return None


class Refused(Exception):
    """An answer of the API that does not get better by waiting."""


def say(*words):
    print(*words, flush=True)


def end(position):
    """Prints where to go on, whatever ends the script."""
    words = ("stopped; to go on from here: --from", position)
    try:
        say(*words)
    except OSError:  # Nobody reads the output any more.
        print(*words, file=sys.stderr)


def retry_after(headers, default_s):
    """The seconds that an answer asks to wait, up to MAX_WAIT_S."""
    try:
        return min(max(int(headers["Retry-After"]), 1), MAX_WAIT_S)
    except (TypeError, ValueError):
        return default_s


class Feed:
    """The event feed of a key."""

    def __init__(self, base, key, types):
        self.url = base.rstrip("/") + "/v1/events"
        self.key, self.types = key, types
        # What the answers have in X-Mode: `test` in a sandbox.
        self.mode = None
        self.opener = urllib.request.build_opener(NoRedirects)

    def page(self, **query):
        """Reads a page. Waits while the API is busy or out of reach. Raises Refused otherwise."""
        query = {"limit": PAGE, **query, **({"types": self.types} if self.types else {})}
        request = urllib.request.Request(f"{self.url}?{urllib.parse.urlencode(query)}")
        request.add_header("Authorization", f"Bearer {self.key}")
        wait_s = 1
        while True:
            try:
                with self.opener.open(request, timeout=API_TIMEOUT_S) as answer:
                    self.mode = answer.headers["X-Mode"]
                    return json.load(answer)
            except urllib.error.HTTPError as answer:
                if answer.code != 429 and answer.code < 500:
                    raise Refused(f"{answer.code} {answer.read().decode(errors='replace')}") from None
                reason, pause_s = f"the API answers {answer.code}", retry_after(answer.headers, wait_s)
            except (*NO_ANSWER, json.JSONDecodeError, UnicodeDecodeError) as error:
                reason, pause_s = f"no answer of the API ({error})", wait_s
            say(f"waiting {pause_s} s: {reason}")
            time.sleep(pause_s)
            wait_s = min(wait_s * 2, MAX_WAIT_S)


class Receiver:
    """The local receiver, which gets what an endpoint of the service gets."""

    def __init__(self, url, secret):
        self.url, self.secret = url, base64.b64decode(secret[len("whsec_") :], validate=True)
        # Without the proxies of the environment: the address is local.
        self.opener = urllib.request.build_opener(NoRedirects, urllib.request.ProxyHandler({}))

    def request(self, event, mode):
        """The signed request for an event. Its body has the bytes of the service's webhook."""
        body = {name: event[name] for name in ("type", "timestamp", "data")}
        body = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        now = str(int(time.time()))
        signed = f"{event['id']}.{now}.".encode() + body
        signature = base64.b64encode(hmac.new(self.secret, signed, hashlib.sha256).digest()).decode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "partner-api-listen/1",
            "webhook-id": event["id"],
            "webhook-timestamp": now,
            "webhook-signature": f"v1,{signature}",
            "x-service-event": event["type"],
            **({"x-service-mode": mode} if mode else {}),
        }
        return urllib.request.Request(self.url, body, headers)

    def post(self, event, mode):
        """Posts an event once. Returns the status, or the reason why there is none."""
        try:
            with self.opener.open(self.request(event, mode), timeout=RECEIVER_TIMEOUT_S) as answer:
                return answer.status
        except urllib.error.HTTPError as answer:
            return answer.code
        except NO_ANSWER as error:
            return getattr(error, "reason", repr(error))

    def pass_on(self, event, mode):
        """Posts an event until the receiver takes it, three times at most. Prints one line."""
        name = f"{event['id']} {event['type']}"
        for pause_s in (*RECEIVER_WAITS_S, None):
            status = self.post(event, mode)
            if isinstance(status, int) and 200 <= status < 300:
                return say(name, status)
            if pause_s is not None:
                time.sleep(pause_s)
        say(name, f"skipped after {len(RECEIVER_WAITS_S) + 1} attempts, the last:", status)


class Listener:
    """Follows the feed from a start: `now`, `oldest` or a cursor."""

    def __init__(self, feed, receiver, start):
        self.feed, self.receiver, self.position = feed, receiver, start

    def query(self):
        return {"now": {"since": NO_EVENT}, "oldest": {}}.get(self.position, {"cursor": self.position})

    def run(self):
        while True:
            page = self.feed.page(**self.query())
            for event in page["data"]:
                self.receiver.pass_on(event, self.feed.mode)
            # The position moves once all of the page is passed on, so a restart misses nothing. Events of a page that
            # was interrupted come again, with the same webhook-id.
            self.position = page["next_cursor"]
            if not page["has_more"]:
                time.sleep(POLL_S)


def http_url(text):
    try:
        parts = urllib.parse.urlsplit(text)
        # `port` raises ValueError if it is no number.
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and re.fullmatch("[!-~]+", text):
            return text
    except ValueError:
        pass
    raise argparse.ArgumentTypeError("must be an address that begins with http:// or https://")


def signing_secret(text):
    try:
        if text.startswith("whsec_") and base64.b64decode(text[len("whsec_") :], validate=True):
            return text
    except ValueError:
        pass
    raise argparse.ArgumentTypeError("must be whsec_ and base64")


def api_key(text):
    if re.fullmatch("[!-~]*", text.strip()):
        return text.strip()
    # Nothing of the key is printed.
    raise argparse.ArgumentTypeError("has characters that no key has")


def options(arguments):
    parser = argparse.ArgumentParser(
        description="Passes the events of the Partner API on to a receiver on your machine, signed like webhooks."
    )
    parser.add_argument(
        "--base",
        required=True,
        type=http_url,
        metavar="URL",
        help="address of the API: of the sandbox while you build, if there is one, then of the live service",
    )
    parser.add_argument(
        "--to",
        default=RECEIVER,
        type=http_url,
        metavar="URL",
        help=f"address of your receiver; default: {RECEIVER}",
    )
    parser.add_argument("--types", metavar="A,B", help="types of events; default: all that the key may read")
    parser.add_argument(
        "--from",
        dest="start",
        default="now",
        metavar="now|oldest|CURSOR",
        help="where to begin: with what happens from now on (default), with the oldest kept event, or at a cursor that "
        "this script printed",
    )
    parser.add_argument("--secret", type=signing_secret, metavar="whsec_...", help="signing secret; default: a new one")
    parser.add_argument(
        "--key", type=api_key, default=os.environ.get("PARTNER_API_KEY"), help="default: PARTNER_API_KEY"
    )
    # A file with lines that end in CR LF leaves a CR behind a value.
    chosen = parser.parse_args([word.strip() for word in arguments])
    if not chosen.key:
        parser.error("give the key in PARTNER_API_KEY or with --key")
    return chosen


def main(arguments=None):
    chosen = options(sys.argv[1:] if arguments is None else arguments)
    secret = chosen.secret
    if not secret:
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        say("secret", secret)
    # Windows has no SIGHUP, and nohup ignores it.
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    listener = Listener(Feed(chosen.base, chosen.key, chosen.types), Receiver(chosen.to, secret), chosen.start)
    try:
        listener.run()
    except Refused as answer:
        say("the API refuses:", answer)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        end(listener.position)


if __name__ == "__main__":
    sys.exit(main())
