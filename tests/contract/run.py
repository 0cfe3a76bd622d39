"""The service against its own description: the OpenAPI document is valid, its examples match its schemas, and
Schemathesis finds no answer that contradicts the document.

Takes the path of the stack under test, and options for `st run`. Runs with PYTHONPATH=tests. Needs `schemathesis` and
`openapi-spec-validator` from PyPI.
"""

import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import time

import jsonschema_rs
from local_stack import call, sandbox, stack
from openapi_spec_validator import OpenAPIV30SpecValidator, OpenAPIV31SpecValidator
from world import access, publish_facts

HERE = pathlib.Path(__file__).resolve().parent
# A slow machine that does not reach every operation in time gets a second, longer run.
SECONDS = (60, 300)
SEED = 1


def check_examples(document):
    """Checks every example against its schema. Returns their number."""
    count = 0

    def check(schema, value, where):
        nonlocal count
        whole = {"$ref": "#/schema", "schema": schema, "components": document["components"]}
        validator = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
        errors = [error.message for error in validator.iter_errors(value)]
        assert not errors, f"{where}: {errors}"
        count += 1

    def walk(node, where):
        if isinstance(node, list):
            for index, item in enumerate(node):
                walk(item, f"{where}/{index}")
        if isinstance(node, dict):
            if isinstance(node.get("schema"), dict):
                for name, example in node.get("examples", {}).items():
                    check(node["schema"], example["value"], f"{where} {name}")
                if "example" in node:
                    check(node["schema"], node["example"], where)
            for name, item in node.items():
                if name not in ("example", "examples", "schemas"):
                    walk(item, f"{where}/{name}")

    walk(document, "#")
    return count


def run_schemathesis(base_url, aws_url, seconds, options):
    """Runs Schemathesis for up to `seconds`. Returns its exit code and the answers by operation and status."""
    publish_facts(base_url, aws_url)
    st = pathlib.Path(sysconfig.get_path("scripts")) / "st"
    command = [st, "--config-file", HERE / "schemathesis.toml", "run", f"{base_url}/openapi.json"]
    command += ["--phases", "examples,coverage,fuzzing,stateful", "--max-time", str(seconds), "--seed", str(SEED)]
    with tempfile.TemporaryDirectory() as directory:
        tally = pathlib.Path(directory) / "tally.json"
        given = access(base_url) | {"tally": str(tally)}
        modules = {"SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
        environment = os.environ | modules | {"CONTRACT_ACCESS": json.dumps(given)}
        result = subprocess.run([*command, *options], env=environment, cwd=directory)
        return result.returncode, json.loads(tally.read_text())


def never_successful(document, tally):
    """Operations without a successful call, except `readDescription`, which Schemathesis leaves out."""
    done = {name.split()[0] for name in tally if int(name.split()[1]) < 400}
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = {operation["operationId"] for operation in operations} - {"readDescription"}
    return sorted(names - done)


def validate(base_url):
    """Checks the document of a stack in both versions of OpenAPI, and its examples. Returns it."""
    document = call(f"{base_url}/openapi.json")
    OpenAPIV31SpecValidator(document).validate()
    OpenAPIV30SpecValidator(call(f"{base_url}/openapi-3.0.json")).validate()
    mode = "sandbox" if "/v1/test/data" in document["paths"] else "live"
    print(f"openapi.json, {mode}: valid, {check_examples(document)} examples fit their schemas", flush=True)
    return document


def check(binary, seconds, options):
    """Checks a new sandbox, whose document has all operations. Returns the exit code of Schemathesis and the operations
    without a successful call."""
    began = time.monotonic()
    with sandbox(binary) as (base_url, aws_url):
        document = validate(base_url)
        code, tally = run_schemathesis(base_url, aws_url, seconds, options)
    print(f"contract: {sum(tally.values())} requests, {time.monotonic() - began:.0f} s")
    return code, never_successful(document, tally)


def main(binary, *options):
    with stack(binary) as (base_url, _):
        validate(base_url)
    for seconds in SECONDS:
        code, missing = check(binary, seconds, options)
        if code != 0 or options or not missing:
            return code
        print(f"not successful yet: {', '.join(missing)}", flush=True)
    raise AssertionError(f"never successful: {missing}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
