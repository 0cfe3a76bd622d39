"""The emulated AWS: ministack in a process of its own, on loopback, with IAM enforced."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import boto3

REGION = "us-east-1"
START_TIMEOUT_S = 60
# Any pair of credentials is the account's root.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


class Cloud:
    """A context manager that starts and ends ministack."""

    def __init__(self, folder):
        self.folder = folder
        self.log = folder / "ministack.log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        # Without this machine's own AWS settings.
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        self.environment |= CREDENTIALS | {"AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": self.url}

    def __enter__(self):
        # Removes the previous run's state, mostly unpacked zips.
        state = self.folder / "state"
        shutil.rmtree(state, ignore_errors=True)
        state.mkdir()
        settings = {
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "AUTH": "true",
            "TMPDIR": str(state),
            # Functions inherit it and so may reach the receiver on loopback. A test ensures that the template does not
            # set it.
            "ALLOW_LOOPBACK_RECEIVERS": "true",
        }
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [self.folder / "ministack/bin/ministack"],
                cwd=state,
                env=self.environment | settings,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self.wait_until_up()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def wait_until_up(self):
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=5).close()
                return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError(f"ministack did not start: see {self.log}")

    def end(self):
        """Ends ministack and its functions."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
                self.process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

    def session(self):
        """A session in the account's region."""
        return boto3.Session(region_name=REGION)

    def client(self, service):
        """Creates a client of a service as the account's root."""
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        return boto3.client(service, region_name=REGION, endpoint_url=self.url, **keys)

    def refusals(self):
        """Fails if a log of the functions or the emulator contains a denied call."""
        text = self.log.read_text(errors="replace")
        logs = self.client("logs")
        for group in logs.describe_log_groups()["logGroups"]:
            events = logs.filter_log_events(logGroupName=group["logGroupName"])["events"]
            text += "\n".join(event["message"] for event in events)
        refused = sorted({line[:300] for line in text.splitlines() if re.search("AccessDenied|not authorized to", line)})
        assert not refused, refused


def eventually(what, look, timeout_s=90):
    """Polls `look` until it returns a truthy value, and returns that."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.25)
    raise AssertionError(f"{what}: not within {timeout_s} s")
