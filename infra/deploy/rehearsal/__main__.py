"""Deploys the built zips to an emulated AWS in both modes, drives the functions, and prints a summary."""

import signal
import sys
import time
import traceback
from pathlib import Path

import record
from cloud import Cloud
from drive import Drive
from sandbox import Sandbox
from stack import Stack

DETAIL_CHARS = 200


class Summary:
    """The executed steps with their results."""

    def __init__(self):
        self.lines = []
        self.failed = False

    def step(self, what, act):
        """Runs a step and prints its result, with the step's return value as detail."""
        began = time.monotonic()
        try:
            detail, mark = act() or "", "ok"
        except Exception as error:
            traceback.print_exc()
            detail, mark, self.failed = f"{type(error).__name__}: {error}"[:DETAIL_CHARS], "FAILED", True
        self.lines.append(f"{mark:6}  {time.monotonic() - began:5.1f} s  {what}{': ' if detail else ''}{detail}")
        print(self.lines[-1], flush=True)
        return mark == "ok"

    def __str__(self):
        return "\n".join(["", "== rehearsal: " + ("FAILED" if self.failed else "all steps passed"), *self.lines])


def main(architecture, folder, zips):
    folder = Path(folder).resolve()
    # A rehearsal that is ended from outside ends the emulator and its functions too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    summary = Summary()
    # Of the templates as they are now, since a rehearsal takes minutes.
    rehearsed = record.digest()
    for mode, drives in (("live", Drive), ("test", Sandbox)):
        with Cloud(folder) as cloud:
            stack = Stack(cloud, folder, architecture, Path(zips).resolve(), mode)
            if summary.step(f"sam deploy makes the stack with the mode {mode}", stack.deploy):
                drive = drives(cloud, stack)
                refused = ("no call was denied for a missing permission", cloud.refusals)
                changes = stack.changes() if mode == "live" else []
                for what, act in [*stack.checks(), *drive.steps(), refused, *changes]:
                    summary.step(what, act)
    for workaround in stack.workarounds:
        print(f"note: in the rehearsal's copy of the template, {workaround}")
    print(
        "note: not rehearsed, since ministack lacks it: the HTTP API's routes, authorizer, CORS and throttling; encryption and backups of "
        "tables; reserved concurrency"
    )
    print(summary)
    if summary.failed:
        return 1
    record.write(rehearsed)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
