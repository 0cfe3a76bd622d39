"""The kits as senders of the requests that `mistakes` makes."""

import contextlib

from request_log import Exchange

from make import Refused
from n8n import CREATION, FEED, NO_INPUT


class N8n:
    """The workflow. Any workflow of the coach may call its second part with what it has."""

    def __init__(self, engine):
        self.engine = engine

    def create(self, key, email, name, reference):
        given = {"email": email, "full_name": name, "reference": reference}
        return self.send(CREATION, key, input=NO_INPUT | given)

    def read(self, key, text=None):
        """Reads the feed from a cursor that no answer gave."""
        return self.send(FEED, key, staticData={"global": {"cursor": text}} if text else {})

    def send(self, start, key, **given):
        answer = self.engine.ask(start, key=key.secret, **given)
        [request] = answer["requests"]
        exchange = Exchange(**request)
        assert bool(answer.get("error")) == (exchange.status >= 400), f"{exchange}, and n8n has {answer.get('error')}"
        return exchange


class Zapier:
    """The app, in which a user may put any text into any field."""

    def __init__(self, app, base_url):
        self.app, self.base_url = app, base_url

    def create(self, key, email, name, reference):
        return self.send("creates.client", key, email=email, full_name=name, reference=reference)

    def read(self, key, text="new_client"):
        """Reads the events of a type that there may not be."""
        return self.send("triggers.event", key, type=text)

    def send(self, part, key, **given):
        return Exchange(**self.app.ask({"part": part, "base": self.base_url, "key": key.secret, "input": given}))


class Make:
    """The app with a connection for each key."""

    def __init__(self, app):
        self.app = app

    def create(self, key, email, name, reference):
        return self.send("createClient", key, email=email, full_name=name, reference=reference)

    def read(self, key, text=""):
        """Reads the feed from a cursor that no answer gave."""
        return self.send("readEvents", key, cursor=text, types="")

    def send(self, module, key, **given):
        self.app.connection["key"] = key.secret
        with contextlib.suppress(Refused):
            self.app.run("modules", module, **given)
        return self.app.exchange
