"""Forged requests that a receiver has to refuse."""

import base64
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone

from standardwebhooks import Webhook

# The libraries' own tolerance is 300 seconds.
TOO_MUCH = timedelta(seconds=310)


def signed(secret, event_id, body, later=timedelta()):
    """Headers of an event signed with the secret now, or `later`."""
    time = datetime.now(timezone.utc) + later
    return {
        "content-type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(int(time.timestamp())),
        "webhook-signature": Webhook(secret).sign(event_id, time, body.decode()),
    }


def forgeries(secret, event_id, body):
    """Yields description, headers and body of forgeries, each with one difference from the service's request. An old
    capture has the same bytes and the signature of its time."""
    real = signed(secret, event_id, body)
    another_secret = "whsec_" + base64.b64encode(bytes(32)).decode()
    yield "a changed body", real, body.replace(b'"new_client"', b'"new_cl1ent"')
    yield "a body with a space more", real, body + b" "
    yield "another event's signature", real | {"webhook-id": event_id + "0"}, body
    yield "a moved timestamp", real | {"webhook-timestamp": str(int(real["webhook-timestamp"]) - 1)}, body
    yield "another secret's signature", signed(another_secret, event_id, body), body
    yield "a capture that is too old", signed(secret, event_id, body, -TOO_MUCH), body
    yield "a signature from the future", signed(secret, event_id, body, TOO_MUCH), body
    yield "a signature that is none", real | {"webhook-signature": "nonsense"}, body
    yield "a timestamp that is none", real | {"webhook-timestamp": "yesterday"}, body
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        yield f"no {name}", {other: value for other, value in real.items() if other != name}, body


def post(url, headers, body):
    """Sends a POST and returns the status of the answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            return answer.status
    except urllib.error.HTTPError as answer:
        return answer.code
