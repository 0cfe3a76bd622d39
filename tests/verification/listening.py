"""`/docs/listen.py` against the guide's receivers: it passes every event of the feed on once, signed as the service
signs, and goes on after failures of the receiver and of the API, and after its own end. In a sandbox it says so to the
receiver, as the service does.

Takes the paths of the stack under test, of the receiver in Rust and of a folder for the libraries from npm and Go.
Runs with PYTHONPATH=tests. Needs `standardwebhooks` from PyPI.
"""

import ast
import base64
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook

from coach import EVENTS, Coach
from fake_feed import fake_feed
from languages import commands
from local_stack import sandbox
from running import Running

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "functions" / "docs" / "kits" / "listen.py"
SECRET = "whsec_" + base64.b64encode(bytes(range(1, 33))).decode()
OLDEST_PYTHON = (3, 9)
DEADLINE_S = 30
# The header by which a receiver knows the events of a sandbox.
MODE = "x-service-mode"


class Listening:
    """A running listen.py."""

    def __init__(self, scope, base_url, to, *arguments, key="svc_live_key"):
        folder = pathlib.Path(scope.enter_context(tempfile.TemporaryDirectory()))
        self.file = folder / "output"
        command = [sys.executable, SCRIPT, "--base", base_url, "--to", to, *arguments]
        # A proxy of the machine must not get what is local.
        environment = os.environ | {"PARTNER_API_KEY": key, "http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
        output = scope.enter_context(self.file.open("w"))
        self.process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        scope.callback(self.process.kill)

    def lines(self):
        return self.file.read_text().splitlines()

    def until(self, holds):
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)
            assert time.monotonic() < deadline, self.lines()

    def until_line(self, start):
        """Waits for a line that begins so. Returns it."""
        self.until(lambda: any(line.startswith(start) for line in self.lines()))
        return next(line for line in self.lines() if line.startswith(start))

    def end(self, by=signal.SIGINT):
        """Stops the script as Ctrl-C does. Returns the cursor to go on from."""
        self.process.send_signal(by)
        assert self.process.wait(DEADLINE_S) == 0, self.lines()
        line = self.lines()[-1]
        assert line.startswith("stopped; to go on from here: --from "), self.lines()
        return line.split()[-1]


class Sink:
    """A receiver that verifies and answers by a script of statuses, None for no answer, then with 204. `gate` holds
    the answers back while it is cleared."""

    def __init__(self, scope):
        self.script, self.taken, self.bodies, self.gate = [], [], {}, threading.Event()
        self.gate.set()
        self.headers = {}
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                sink.headers[headers["webhook-id"]] = headers
                sink.bodies[self.headers["webhook-id"]] = body
                sink.gate.wait(DEADLINE_S)
                status = sink.script.pop(0) if sink.script else 204
                if status is None:
                    return self.connection.close()
                if status == 204:
                    sink.taken.append(self.headers["webhook-id"])
                self.send_response(status)
                if status == 302:
                    self.send_header("location", "http://127.0.0.1:9/")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        scope.callback(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}/hook"

    def expect(self, listening, ids):
        listening.until(lambda: len(self.taken) >= len(ids))
        assert self.taken == ids, f"{self.taken} in place of {ids}: {listening.lines()}"


def ids_of(emitted):
    return [event_id for event_id, _ in emitted]


def check_faults_of_the_api(scope):
    """After 429, 5xx and lost connections the script goes on, and misses nothing. Other refusals end it."""
    feed, base_url = scope.enter_context(fake_feed())
    sink = Sink(scope)
    ids = ids_of(feed.emit(4))
    feed.faults = [(503, {}), (429, {"Retry-After": "1"}), None, (200, {}), (500, {"Retry-After": "1"})]
    began = time.monotonic()
    listening = Listening(scope, base_url, sink.url, "--from", "oldest", "--types", "new_client", "--secret", SECRET)
    sink.expect(listening, ids)
    assert time.monotonic() - began > 3, "Retry-After and the waits before it"
    assert all(query["types"] == "new_client" for query in feed.queries) and "cursor" not in feed.queries[0]
    assert set(feed.keys) == {"Bearer svc_live_key"}
    assert sum(line.startswith("waiting ") for line in listening.lines()) == 4, listening.lines()
    # What happens later arrives, and the cursor leads on.
    ids += ids_of(feed.emit(2))
    sink.expect(listening, ids)
    listening.until(lambda: feed.queries[-1].get("cursor") == "6")
    assert listening.end() == "6"
    for status in (401, 403, 400, 402):
        feed.faults = [(status, {})]
        refused = Listening(scope, base_url, sink.url, "--from", "6")
        assert refused.process.wait(DEADLINE_S) == 1, refused.lines()
        reason, position = refused.lines()[-2:]
        assert f"the API refuses: {status}" in reason and "A reason." in reason
        assert position == "stopped; to go on from here: --from 6"


def check_faults_of_the_receiver(scope):
    """A failed event is tried three times. Then it is skipped with a line, and the next one passes."""
    feed, base_url = scope.enter_context(fake_feed())
    sink = Sink(scope)
    first, second, third = ids_of(feed.emit(3))
    sink.script = [500, None, 204, 302, 404, 500]
    listening = Listening(scope, base_url, sink.url, "--from", "oldest", "--secret", SECRET)
    sink.expect(listening, [first, third])
    listening.until_line(f"{third} new_client 204")
    assert listening.lines() == [
        f"{first} new_client 204",
        f"{second} new_client skipped after 3 attempts, the last: 500",
        f"{third} new_client 204",
    ]
    assert not sink.script
    listening.end(signal.SIGTERM)
    # Nothing listens there.
    listening = Listening(scope, base_url, "http://127.0.0.1:9/", "--from", "2", "--secret", SECRET)
    assert "skipped after 3 attempts, the last: [Errno" in listening.until_line(f"{third} new_client skipped")


def check_start_and_resumption(scope):
    """`now` skips what happened before. A stopped script goes on from its cursor and misses nothing."""
    feed, base_url = scope.enter_context(fake_feed())
    sink = Sink(scope)
    feed.emit(5)
    listening = Listening(scope, base_url, sink.url)
    secret = listening.until_line("secret whsec_").split()[1]
    listening.until(lambda: len(feed.queries) > 1)
    ids = ids_of(feed.emit(7))
    sink.expect(listening, ids)
    for event_id, body in sink.bodies.items():
        Webhook(secret).verify(body, sink.headers[event_id])
    headers = sink.headers[ids[0]]
    assert (headers["x-service-event"], headers["content-type"]) == ("new_client", "application/json"), headers
    assert MODE not in headers, "the feed says nothing of a mode"

    # Stopped within a page: the receiver has the event, its answer is not there yet.
    sink.gate.clear()
    more = ids_of(feed.emit(4))
    listening.until(lambda: more[0] in sink.bodies)
    cursor = listening.end()
    sink.gate.set()
    more += ids_of(feed.emit(2))
    again = Listening(scope, base_url, sink.url, "--from", cursor, "--secret", SECRET)
    again.until(lambda: set(sink.taken) == set(ids + more))
    assert sink.taken[:7] == ids and len(sink.taken) <= len(ids + more) + 1, sink.taken
    again.until(lambda: feed.queries[-1].get("cursor") == str(len(feed.events)))
    assert again.end() == str(len(feed.events))


def check_ends(scope):
    """However the script ends, it prints the position: by a signal, by a refusal within, by an answer that it does not
    know, and when nobody reads its output any more."""
    feed, base_url = scope.enter_context(fake_feed())
    sink = Sink(scope)
    feed.emit(3)
    for by in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        listening = Listening(scope, base_url, sink.url, "--from", "1", "--secret", SECRET)
        listening.until(lambda: feed.queries[-1:] == [{"limit": "100", "cursor": "3"}])
        assert listening.end(by) == "3"
        feed.queries.clear()
    # 203 is a success with another body.
    for status in (401, 203):
        feed.faults = [(200, {}), (status, {})]
        listening = Listening(scope, base_url, sink.url, "--from", "1", "--secret", SECRET)
        assert listening.process.wait(DEADLINE_S) == 1, listening.lines()
        assert "stopped; to go on from here: --from 3" in listening.lines(), listening.lines()

    command = [sys.executable, SCRIPT, "--base", base_url, "--to", sink.url, "--key", "k", "--from", "3"]
    command += ["--secret", SECRET]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as unread:
        unread.stdout.close()
        feed.emit(1)
        assert "stopped; to go on from here: --from 3\n" in unread.stderr.read()


def check_arguments(scope):
    """Wrong arguments end the script with status 2 and say why. White space around a value is dropped, as of a key from a
    file with lines that end in CR LF. A key is never printed."""
    ast.parse(SCRIPT.read_text(), feature_version=OLDEST_PYTHON)
    right = {"--base": "http://127.0.0.1:9", "--to": "http://127.0.0.1:9", "--key": "k"}
    wrong = [("--base", "file:///etc/hosts"), ("--base", "http://a b"), ("--base", "http://a:b")]
    wrong += [("--to", "127.0.0.1:9000"), ("--secret", "whsec_?"), ("--key", ""), ("--key", " \r\n")]
    wrong += [("--key", "svc_live\rkey"), ("--key", "\ufeffsvc_live")]
    for name, bad in wrong:
        arguments = [word for pair in (right | {name: bad}).items() for word in pair]
        done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)
        assert done.returncode == 2 and name in done.stderr and "svc_live" not in done.stderr, done
    feed, base_url = scope.enter_context(fake_feed())
    for end in ("\r", "\n", " \r\n"):
        arguments = (f"{base_url}/{end}", f"http://127.0.0.1:9/{end}", "--secret", f"{SECRET}{end}")
        listening = Listening(scope, *arguments, key=f"svc_live_key{end}")
        listening.until(lambda: feed.keys)
        listening.end()
        assert set(feed.keys) == {"Bearer svc_live_key"}, feed.keys
        assert "svc_live" not in "".join(listening.lines()), listening.lines()
        feed.keys.clear()


def check_receivers(scope, coach, runnable):
    """Each of the guide's receivers gets each event of the sandbox's feed once, with the bytes of the webhook. A receiver
    that looks at the headers learns from both the service and the script that the event is of a sandbox."""
    allowed = {"types": EVENTS, "payload_mode": "contact_details"}
    key = coach.settings("keys", {"name": "Listening", "scope": "partner", "events": allowed})["key"]
    hook = Running("webhook", scope)
    hook.secret = coach.settings("webhooks", {"url": hook.url, "events": EVENTS, "payload_mode": "contact_details"})["secret"]
    hook.start(next(iter(runnable.values())), hook.secret)
    told, sink = Sink(scope), Sink(scope)
    coach.settings("webhooks", {"url": told.url, "events": EVENTS, "payload_mode": "contact_details"})
    first = Listening(scope, coach.base_url, sink.url, "--from", "oldest", key=key)
    receivers = []
    for language, command in runnable.items():
        receiver = Running(language, scope)
        receiver.start(command, SECRET)
        arguments = ("--from", "oldest", "--secret", SECRET)
        receivers.append((receiver, Listening(scope, coach.base_url, receiver.url, *arguments, key=key)))
    count = coach.emit_events()
    hook.until(lambda: len(hook.accepted()) == count)
    first.until(lambda: len(told.taken) == len(sink.taken) == count)
    for receiver in (told, sink):
        modes = [headers.get(MODE) for headers in receiver.headers.values()]
        assert modes == ["test"] * count, modes
    for receiver, listening in receivers:
        listening.until(lambda: len(receiver.accepted()) >= count and len(listening.lines()) >= count)
        assert receiver.accepted() == hook.accepted(), f"{receiver.language}: {receiver.output()}"
        for event_id in hook.stored():
            bodies = [(one.folder / "inbox" / event_id).read_bytes() for one in (receiver, hook)]
            assert bodies[0] == bodies[1], bodies
        assert all(line.endswith(" 204") for line in listening.lines()), listening.lines()
        listening.end()
    # The first one had its last event before the others began to be looked at, so its cursor is at the end, and what
    # follows arrives alone.
    cursor = first.end()
    count = coach.create_client("after")
    receiver = Running("after a restart", scope)
    receiver.start(next(iter(runnable.values())), SECRET)
    again = Listening(scope, coach.base_url, receiver.url, "--from", cursor, "--secret", SECRET, key=key)
    again.until(lambda: len(receiver.accepted()) == count)
    again.end()
    # A key that may not read events, and no key.
    for other, status in ((coach.key, 403), ("svc_live_nonsense", 401)):
        refused = Listening(scope, coach.base_url, receiver.url, key=other)
        assert refused.process.wait(DEADLINE_S) == 1 and f"the API refuses: {status}" in refused.lines()[-2], refused.lines()


def main(binary, rust, tools):
    began = time.monotonic()
    def alone(check):
        with contextlib.ExitStack() as scope:
            check(scope)

    checks = [check_faults_of_the_api, check_faults_of_the_receiver, check_start_and_resumption]
    checks += [check_ends, check_arguments]
    # They mostly wait.
    with ThreadPoolExecutor() as pool:
        list(pool.map(alone, checks))
    with contextlib.ExitStack() as scope:
        base_url, aws_url = scope.enter_context(sandbox(binary))
        with urllib.request.urlopen(f"{base_url}/docs/listen.py") as answer:
            served = answer.read().decode().replace(base_url, "https://api.example.com")
            assert served.replace("svc_test_", "svc_live_") == SCRIPT.read_text(), "the served script is another one"
        check_receivers(scope, Coach(base_url, aws_url), commands(pathlib.Path(rust).resolve(), pathlib.Path(tools).resolve()))
    print(f"listen.py: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
