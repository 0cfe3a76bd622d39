"""The Make definition. Make has no public validator, so its structure is checked against Make's documentation, and its
requests are carried out."""

import json
import urllib.error
import urllib.parse
import urllib.request

from request_log import Exchange

from iml import filled, names_in

PARTS = {"base", "connections", "modules", "rpcs"}
TYPES = {"trigger", "action", "search"}
MODULE = {"label", "description", "type", "connection", "parameters", "expect", "communication", "interface", "samples"}
FIELD_TYPES = {"text", "select", "uinteger", "email", "boolean", "url", "password", "date", "collection", "array"}


def fields(place, described):
    """Asserts the form of fields. Returns their names."""
    for field in described:
        assert {"name", "type", "label"} <= field.keys(), f"{place}: {field}"
        assert field["type"] in FIELD_TYPES, f"{place}: {field}"
        assert field["type"] != "select" or field["options"], f"{place}: {field}"
        fields(place, field.get("spec", []))
    names = [field["name"] for field in described]
    assert len(set(names)) == len(names), f"{place}: {names}"
    return names


def check(app):
    """Asserts the structure: each part is there, and what a part names is there too."""
    assert app.keys() == PARTS, app.keys()
    for name, connection in app["connections"].items():
        names = fields(name, connection["parameters"])
        assert app["base"]["log"]["sanitize"] == connection["communication"]["log"]["sanitize"]
        check_names(name, connection["communication"], {"parameters": names, "body": None, "statusCode": None})
        check_names("base", app["base"], {"connection": names, "body": None, "statusCode": None})
    for name, module in app["modules"].items():
        assert MODULE <= module.keys() and module["type"] in TYPES, name
        assert module["connection"] in app["connections"], name
        names = fields(name, module["parameters"] + module["expect"])
        shown = fields(name, module["interface"])
        assert set(shown) == module["samples"].keys(), f"{name}: {shown}"
        known = {"parameters": names, "body": None, "item": None}
        check_names(name, module["communication"], known)
        response = module["communication"]["response"]
        is_list = module["type"] != "action"
        assert ("iterate" in response, "limit" in response) == (is_list, is_list), name
        assert ("trigger" in response, "epoch" in module) == ((module["type"] == "trigger"),) * 2, name
        for field in module["parameters"] + module["expect"]:
            options = field.get("options")
            if isinstance(options, str):
                assert options.removeprefix("rpc://") in app["rpcs"], f"{name}: {options}"
    for name, rpc in app["rpcs"].items():
        assert rpc["connection"] in app["connections"], name
        assert rpc["communication"]["response"]["output"].keys() == {"label", "value"}, name


def check_names(place, part, known):
    """Asserts that each name in braces begins with a known name, and names a field if its fields are known."""
    if isinstance(part, dict):
        for name, inner in part.items():
            check_names(f"{place}.{name}", inner, known)
    for path in names_in(part) if isinstance(part, str) else []:
        first, *rest = path.split(".")
        assert first in known, f"{place}: {path}"
        assert known[first] is None or rest[0] in known[first], f"{place}: {path} is no field"


class Refused(Exception):
    """An answer that ends a run of a module."""


class App:
    """The app with a connection, and its latest request."""

    def __init__(self, app, base, key):
        self.app, self.connection, self.exchange = app, {"base": base, "key": key}, None

    def connect(self):
        """Tests the connection. Returns its label."""
        [connection] = self.app["connections"].values()
        body = self.send(connection["communication"], {"parameters": self.connection}, "")
        return filled(connection["communication"]["response"]["metadata"]["value"], {"body": body})

    def send(self, communication, scope, prefix=None):
        """Sends a request, and returns the body of its answer."""
        base = self.app["base"]
        scope = scope | {"connection": self.connection}
        prefix = filled(base["baseUrl"], scope) if prefix is None else prefix
        headers = filled(base["headers"] | communication.get("headers", {}), scope)
        query = urllib.parse.urlencode(filled(communication.get("qs", {}), scope))
        url = prefix + filled(communication["url"], scope) + (f"?{query}" if query else "")
        body = json.dumps(filled(communication["body"], scope)) if "body" in communication else None
        if body:
            headers["content-type"] = "application/json"
        method = communication["method"]
        request = urllib.request.Request(url, body and body.encode(), headers, method=method)
        try:
            answer = urllib.request.urlopen(request)
        except urllib.error.HTTPError as refusal:
            answer = refusal
        with answer:
            text = answer.read().decode()
        self.exchange = Exchange(method, url, headers, body, answer.status, answer.headers, text)
        if answer.status >= 400:
            raise Refused(text)
        return json.loads(text)

    def run(self, kind, name, **parameters):
        """Runs a module or RPC with all its pages. Returns its outputs."""
        communication, outputs, more = self.app[kind][name]["communication"], [], {}
        response = communication["response"]
        while True:
            request = communication | {"qs": communication.get("qs", {}) | more}
            body = self.send(request, {"parameters": parameters})
            items = filled(response["iterate"], {"body": body}) if "iterate" in response else [None]
            outputs += [filled(response["output"], {"body": body, "item": item}) for item in items]
            paging = communication.get("pagination")
            if not paging or not filled(paging["condition"], {"body": body}):
                return outputs
            more = filled(paging["qs"], {"body": body})
