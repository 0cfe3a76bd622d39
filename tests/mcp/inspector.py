"""The Inspector's command line, as people try a server with it: lists in both eras, calls, an error and a wrong key."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import packages
from scene import CONTACT_EMAIL
from tools import CRM_TOOLS

OK, AUTH_REQUIRED, TOOL_ERROR = 0, 3, 5
PROCESSORS = 2


class Inspector:
    """The program for one server and key."""

    def __init__(self, url, key, tools):
        self.url, self.key, self.tools = url, key, tools

    def run(self, method, *arguments, key=None, status=OK):
        """Runs the program, which ends with this status. Returns the result of its method, if there is one."""
        command = [*packages.program(self.tools, "inspector"), "--cli", self.url, "--transport", "http"]
        command += ["--header", f"Authorization: Bearer {key or self.key}", "--format", "json", "--method", method]
        # It keeps files in the home folder.
        environment = os.environ | {"HOME": str(self.tools)}
        options = {"env": environment, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        done = subprocess.run([*command, *arguments], **options)
        told = f"{method} {arguments}: status {done.returncode}, not {status}: {done.stdout}{done.stderr}"
        assert done.returncode == status, told
        return json.loads(done.stdout)["result"] if done.stdout else None

    def check_list(self, era):
        # With `--strict` it fails if a schema is one that some hosts cannot use.
        listed = self.run("tools/list", "--protocol-era", era, "--strict")
        names = [tool["name"] for tool in listed["tools"]]
        assert names == CRM_TOOLS, f"{era}: {names}"

    def check_call(self):
        me = self.run("tools/call", "--tool-name", "whoami", "--protocol-era", "auto")
        assert me["structuredContent"]["scope"] == "crm", me

    def check_arguments(self):
        query = (f"email={CONTACT_EMAIL}", "limit=5")
        found = self.run("tools/call", "--tool-name", "find_contacts", "--tool-arg", *query)
        assert [one["email"] for one in found["structuredContent"]["data"]] == [CONTACT_EMAIL], found

    def check_error(self):
        unknown = json.dumps({"id": "nobody"})
        failed = self.run("tools/call", "--tool-name", "get_contact", "--tool-args-json", unknown, status=TOOL_ERROR)
        assert failed["isError"] and "structuredContent" not in failed, failed

    def check_wrong_key(self):
        # It would begin a sign-in in a browser.
        self.run("tools/list", "--stored-auth-only", key="nonsense", status=AUTH_REQUIRED)


def check(scene, tools):
    one = Inspector(scene.url, scene.crm_key(), tools)
    with ThreadPoolExecutor(PROCESSORS) as pool:
        lists = [pool.submit(one.check_list, era) for era in ("legacy", "modern")]
        others = [one.check_call, one.check_arguments, one.check_error, one.check_wrong_key]
        for running in [*lists, *(pool.submit(other) for other in others)]:
            running.result()
    print(f"inspector: {len(CRM_TOOLS)} tools in both eras, portable schemas; calls, an error, a wrong key", flush=True)
