"""The OpenAPI document, in both versions and in OpenAPI 3.1 of a sandbox, too, by the recommended rules of Redocly and
Spectral, without errors and warnings, and as TypeScript types that compile under `--strict`.

Takes the paths of the stack under test and of a folder for the packages from npm. Runs with PYTHONPATH=tests. Needs node
and npm.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.request

from local_stack import sandbox, stack

RULES = pathlib.Path(__file__).resolve().parent / "lint"
DOCUMENTS = ("openapi.json", "openapi-3.0.json")
PACKAGES = ("@redocly/cli@2.77.0", "@stoplight/spectral-cli@6.16.3", "openapi-typescript@7.13.0", "typescript@5.9.3")


def install(tools):
    """Installs the packages, once."""
    tools.mkdir(parents=True, exist_ok=True)
    if not (tools / "node_modules" / ".bin" / "redocly").exists():
        flags = ["--silent", "--no-save", "--ignore-scripts", "--prefix", tools]
        subprocess.run(["npm", "install", *flags, *PACKAGES], check=True)


def read(url):
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


class Linter:
    """The tools over documents in a folder."""

    def __init__(self, tools):
        self.tools, self.folder = tools / "node_modules" / ".bin", tools / "documents"
        self.folder.mkdir(exist_ok=True)
        for rules in RULES.iterdir():
            # Under Redocly's own name openapi-typescript would take the rules for its.
            shutil.copy(rules, self.folder / f"rules-{rules.name}")

    def run(self, name, *arguments):
        # Nothing is reported to the makers of the tools.
        quiet = {"PATH": f"{self.tools}:{os.environ['PATH']}", "REDOCLY_TELEMETRY": "off", "HOME": str(self.folder)}
        return subprocess.run([self.tools / name, *arguments], cwd=self.folder, env=quiet, capture_output=True, text=True)

    def findings(self, name, document):
        """What the tools find in a document: one line for each finding."""
        (self.folder / name).write_text(json.dumps(document))
        redocly = self.run("redocly", "lint", name, "--config", "rules-redocly.yaml", "--format=json")
        problems = json.loads(redocly.stdout)["problems"]
        found = [f"redocly: {one['ruleId']}: {one['message']} at {one['location'][0].get('pointer')}" for one in problems]
        spectral = self.run("spectral", "lint", name, "--ruleset", "rules-spectral.yaml", "--format=json", "--quiet")
        lines = json.loads(spectral.stdout)
        assert spectral.returncode in (0, 1), spectral.stderr
        found += [f"spectral: {one['code']}: {one['message']} at {'/'.join(map(str, one['path']))}" for one in lines]
        types = self.run("openapi-typescript", name, "--output", "api.d.ts")
        compiled = self.run("tsc", "--strict", "--noEmit", "api.d.ts")
        refused = types.stderr if types.returncode else compiled.stdout
        return found + [f"typescript: {line}" for line in refused.splitlines()]


def main(binary, tools):
    if not (shutil.which("node") and shutil.which("npm")):
        print("lint of the OpenAPI document: skipped, there is no node and npm here")
        return
    began, tools = time.monotonic(), pathlib.Path(tools).resolve()
    install(tools)
    linter = Linter(tools)
    with stack(binary) as (base_url, _):
        documents = {name: read(f"{base_url}/{name}") for name in DOCUMENTS}
    with sandbox(binary) as (base_url, _):
        of_sandbox = read(f"{base_url}/{DOCUMENTS[0]}")
    # The rules know the documents by their names.
    for name, document in [*documents.items(), (DOCUMENTS[0], of_sandbox)]:
        found = linter.findings(name, document)
        assert not found, "\n".join([name, *found])
    broken = documents[DOCUMENTS[0]]
    del broken["info"]["license"], broken["paths"]["/v1/ping"]["get"]["description"]
    broken["paths"]["/v1/clients"]["post"]["requestBody"]["content"]["application/json"]["example"] = {"email": 1}
    tools_that_find = {line.split(":")[0] for line in linter.findings(DOCUMENTS[0], broken)}
    assert tools_that_find >= {"redocly", "spectral"}, f"what is wrong is found: {tools_that_find}"
    print(f"Redocly, Spectral and TypeScript find nothing, in {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
