"""A running receiver of the guide, with what it has accepted and stored."""

import contextlib
import os
import pathlib
import socket
import subprocess
import tempfile
import time

DEADLINE_S = 20


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Running:
    """A receiver in a folder of its own, on a free port. It listens once `start` has its secret."""

    def __init__(self, language, scope):
        self.language, self.scope = language, scope
        self.folder = pathlib.Path(scope.enter_context(tempfile.TemporaryDirectory()))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/coaching"

    def start(self, command, secret):
        environment = os.environ | {"WEBHOOK_SECRET": secret, "PORT": str(self.port)}
        out, errors = (self.scope.enter_context((self.folder / name).open("w")) for name in ("output", "errors"))
        self.process = subprocess.Popen(command, env=environment, cwd=self.folder, stdout=out, stderr=errors)
        self.scope.callback(self.stop)
        self.until(self.is_listening)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def output(self):
        return (self.folder / "output").read_text() + (self.folder / "errors").read_text()

    def until(self, holds):
        """Waits until the condition holds. Fails after `DEADLINE_S`."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)
            assert self.process.poll() is None and time.monotonic() < deadline, f"{self.language}: {self.output()}"

    def is_listening(self):
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True

    def accepted(self):
        """Id and type of each processed event."""
        lines = (line.split() for line in (self.folder / "output").read_text().splitlines())
        return sorted((words[1], words[2]) for words in lines if len(words) == 3)

    def stored(self):
        return sorted(file.name for file in (self.folder / "inbox").iterdir())
