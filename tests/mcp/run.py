"""Clients of the assistants' server, as people have them, against a stack: the Python client, both generations of the
TypeScript client, the Inspector, the conformance tool, an assistant's day, and what the request log shows of it.

Takes the paths of the stack under test and of a folder for the packages from npm; then names of checks, by default all.
Runs with PYTHONPATH=tests, tests/verification and tests/contract. Needs `mcp` from PyPI, and npm.
"""

import asyncio
import pathlib
import sys
import time
import traceback

from local_stack import stack

import conformance
import day
import inspector
import packages
import python_client
import recorded
import typescript
from scene import Scene

CHECKS = {
    "day": lambda scene, _: asyncio.run(day.check(scene)),
    "python": lambda scene, _: asyncio.run(python_client.check(scene)),
    "request-log": lambda scene, _: asyncio.run(recorded.check(scene)),
    "typescript-2": lambda scene, tools: typescript.check(scene, tools, "client2.mjs"),
    "typescript-1": lambda scene, tools: typescript.check(scene, tools, "client1.mjs"),
    "inspector": inspector.check,
    "conformance": conformance.check,
}
# The Python client needs no package from npm. It is found although this folder has its name, too: the folder is no
# package, so it has no `__init__.py`.
WITHOUT_NPM = ("day", "python", "request-log")


def cause(error):
    """The first error within groups of them, which the client's tasks make."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def main(binary, tools, *names):
    tools, names, seconds = pathlib.Path(tools).resolve(), names or list(CHECKS), {}
    if packages.are_possible():
        packages.install(tools)
    else:
        print("mcp: only the Python client, there is no npm here")
        names = [name for name in names if name in WITHOUT_NPM]
    with stack(binary) as addresses:
        scene = Scene(*addresses)
        for name in names:
            began = time.monotonic()
            try:
                CHECKS[name](scene, tools)
            except Exception as error:
                traceback.print_exception(cause(error))
                sys.exit(f"mcp: the check {name} failed: {cause(error)}")
            seconds[name] = time.monotonic() - began
    print("mcp:", ", ".join(f"{name} {taken:.1f} s" for name, taken in seconds.items()))


if __name__ == "__main__":
    main(*sys.argv[1:])
