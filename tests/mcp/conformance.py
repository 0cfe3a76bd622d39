"""The conformance tool of the protocol, at the newest revision of either era. Its checks pass, except those of
conformance-expected.yml."""

import json
import pathlib
import re
import subprocess
import tempfile

import packages
from proxy import proxy

EXPECTED = pathlib.Path(__file__).resolve().with_name("conformance-expected.yml")
# The least checks that pass. A scenario that ends early has fewer, and its other checks count as expected.
LEAST_PASSED = {
    "2025-11-25": {"server-initialize": 2, "ping": 2, "tools-list": 3, "dns-rebinding-protection": 2},
    "2026-07-28": {
        "tools-list": 4,
        "dns-rebinding-protection": 2,
        "http-header-validation": 14,
        "sep-2164-resource-not-found": 2,
        "input-required-result-missing-input-response": 1,
        "input-required-result-unsupported-methods": 2,
        "input-required-result-ignore-extra-params": 1,
        "input-required-result-validate-input": 3,
        "server-stateless": 21,
        "caching": 4,
    },
}
SUMMARY = re.compile(r"^\S+ ([a-z0-9-]+): (\d+) passed, (\d+) failed", re.MULTILINE)


def problems(results):
    """The checks that did not pass and are not expected, with what the tool says of them."""
    expected = EXPECTED.read_text()
    for file in sorted(pathlib.Path(results).glob("*/checks.json")):
        # The folder is named by the scenario and the time.
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", file.parent.name)
        for check in json.loads(file.read_text()):
            is_expected = f"- {scenario}:{check['id']} " in expected
            if check["status"] in ("FAILURE", "WARNING") and not is_expected:
                yield f"{scenario}:{check['id']}: {check.get('errorMessage')} {json.dumps(check.get('details'))[:600]}"


def check_revision(scene, tools, revision):
    with proxy(scene.url, scene.crm_key()) as url, tempfile.TemporaryDirectory() as results:
        command = [*packages.program(tools, "conformance"), "server", "--url", url, "--suite", "all"]
        command += ["--spec-version", revision, "--expected-failures", EXPECTED, "--output-dir", results]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        end = done.stdout[done.stdout.rfind("=== SUMMARY") :]
        report = "\n".join([end, done.stderr, *problems(results)])
    assert done.returncode == 0, f"conformance at {revision}: {report}"
    passed = {scenario: int(count) for scenario, count, _ in SUMMARY.findall(end)}
    for scenario, least in LEAST_PASSED[revision].items():
        assert passed.get(scenario, 0) >= least, f"conformance at {revision}: {scenario} passes too little: {report}"
    failed = sum(int(count) for _, _, count in SUMMARY.findall(end))
    counts = f"{len(passed)} scenarios, {sum(passed.values())} checks passed, {failed} failed as expected"
    print(f"conformance at {revision}: {counts}", flush=True)


def check(scene, tools):
    for revision in LEAST_PASSED:
        check_revision(scene, tools, revision)
