"""The n8n workflow against the descriptions of n8n's own nodes, which `n8n-nodes-base` ships as data. n8n itself is too
large to install, so n8n.cjs runs the workflow on n8n's engine with nodes of its own."""

import json
import os
import pathlib

from line_program import LineProgram

ENGINE = pathlib.Path(__file__).resolve().with_name("n8n.cjs")
# The nodes at which the workflow's two parts begin.
FEED, CREATION = "Every minute", "When another workflow calls"
NO_INPUT = dict.fromkeys(("email", "full_name", "external_id", "reference"))


def describe(types, node):
    """The description of a node's type in its version."""
    for description in types:
        versions = description["version"] if isinstance(description["version"], list) else [description["version"]]
        if f"n8n-nodes-base.{description['name']}" == node["type"] and node["typeVersion"] in versions:
            return description
    raise AssertionError(f"{node['name']}: n8n has no {node['type']} {node['typeVersion']}")


def meets(condition, value, version):
    """Returns True if a value meets a condition of `displayOptions`."""
    if isinstance(condition, dict) and "_cnd" in condition:
        [(operator, bound)] = condition["_cnd"].items()
        known = {"eq": value == bound, "not": value != bound, "exists": value is not None}
        if operator in ("gte", "lte", "gt", "lt") and isinstance(value, (int, float)):
            known |= {"gte": value >= bound, "lte": value <= bound, "gt": value > bound, "lt": value < bound}
        return known.get(operator, False)
    return condition == value


def is_shown(field, parameters, version, defaults):
    """Returns True if n8n shows the field. Only then the field counts."""
    def value(name):
        return version if name == "@version" else parameters.get(name.lstrip("/"), defaults.get(name.lstrip("/")))

    options = field.get("displayOptions", {})
    show = all(any(meets(one, value(name), version) for one in any_of) for name, any_of in options.get("show", {}).items())
    hide = any(any(meets(one, value(name), version) for one in any_of) for name, any_of in options.get("hide", {}).items())
    return show and not hide


def check_parameters(place, fields, parameters, version):
    """Asserts that each parameter is a field that counts, and its value one of the field's."""
    defaults = {}
    for field in fields:
        defaults.setdefault(field["name"], field.get("default"))
    for name, value in parameters.items():
        found = [field for field in fields if field["name"] == name and is_shown(field, parameters, version, defaults)]
        assert found, f"{place}: {name} is no parameter here"
        field, here = found[0], f"{place}.{name}"
        options = field.get("options", [])
        if field["type"] == "options":
            assert value in [option.get("value") for option in options], f"{here}: {value}"
        elif field["type"] == "boolean":
            assert isinstance(value, bool), here
        elif field["type"] == "collection":
            check_parameters(here, options, value, version)
        elif field["type"] == "fixedCollection":
            groups = {option["name"]: option["values"] for option in options}
            for group, items in value.items():
                assert group in groups, f"{here}: {group}"
                for item in items if isinstance(items, list) else [items]:
                    check_parameters(f"{here}.{group}", groups[group], item, version)
        elif field["type"] in ("string", "json"):
            assert isinstance(value, str), here
    for field in fields:
        if field.get("required") and is_shown(field, parameters, version, defaults):
            assert parameters.get(field["name"], field.get("default")), f"{place}: {field['name']} is required"


def check(workflow, types):
    """Asserts that n8n can import the workflow: known nodes with known parameters, connected to each other."""
    names = [node["name"] for node in workflow["nodes"]]
    assert len(set(names)) == len(names) and len({node["id"] for node in workflow["nodes"]}) == len(names), names
    for node in workflow["nodes"]:
        description = describe(types, node)
        check_parameters(node["name"], description["properties"], node["parameters"], node["typeVersion"])
        assert "credentials" not in node, f"{node['name']}: a credential of somebody"
    for source, outputs in workflow["connections"].items():
        assert source in names, source
        for target in (connection["node"] for branch in outputs["main"] for connection in branch):
            assert target in names, target
    targets = json.dumps(workflow["connections"])
    for node in workflow["nodes"]:
        is_start = node["type"].endswith(("Trigger", "stickyNote"))
        assert is_start or f'"node": "{node["name"]}"' in targets, f"nothing leads to {node['name']}"


class Engine:
    """The workflow on n8n's engine, with the static data that n8n keeps between executions."""

    def __init__(self, scope, tools, workflow, base, key):
        # n8n makes a file in the folder of its user.
        environment = os.environ | {"N8N_USER_FOLDER": str(tools)}
        command = ["node", ENGINE, tools / "node_modules" / "n8n-core", tools / "nodes.json"]
        self.engine = LineProgram(scope, command, environment)
        self.asked = {"workflow": workflow, "base": base, "key": key, "failing": None}
        self.static_data, self.requests = {}, []

    def ask(self, start, **given):
        """Executes the workflow from its node `start`. Returns what n8n knows afterwards."""
        return self.engine.ask(self.asked | {"start": start, "staticData": self.static_data} | given)

    def execute(self, start=FEED, failing=None, **given):
        """Executes the workflow, in which the node `failing` fails. Returns what each node gives."""
        answer = self.ask(start, failing=failing, **given)
        assert answer.get("error") == (failing and "this node fails"), answer
        self.static_data, self.requests = answer["staticData"], answer["requests"]
        return answer["reached"]

    def create(self, **client):
        """Runs the second part. Returns the client and the request's headers."""
        [made] = self.execute(CREATION, input=NO_INPUT | client)["Create a client"]
        return made, self.requests[0]["sent"]
