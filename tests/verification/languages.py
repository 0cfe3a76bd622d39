"""Builds and starts the guide's receivers, each in its language with its official library."""

import pathlib
import shutil
import subprocess
import sys

RECEIVERS = pathlib.Path(__file__).resolve().parent.parent / "receivers"
NPM_LIBRARY = "standardwebhooks@1.1.1"
GO_LIBRARY = "github.com/standard-webhooks/standard-webhooks/libraries/go"


class Missing(Exception):
    """The reason why a receiver cannot be run on this machine."""


def node(tools):
    """Copies the receiver beside the library, where Node looks for it."""
    if not (shutil.which("node") and shutil.which("npm")):
        raise Missing("there is no node and npm here")
    if not (tools / "node_modules" / "standardwebhooks").exists():
        install = ["npm", "install", "--silent", "--no-save", "--prefix", tools, NPM_LIBRARY]
        if subprocess.run(install).returncode:
            raise Missing(f"npm cannot install {NPM_LIBRARY}")
    return ["node", shutil.copy(RECEIVERS / "receiver.mjs", tools)]


def go(tools):
    """Vets and builds the receiver."""
    if not shutil.which("go"):
        raise Missing("there is no go here")
    module = tools / "go"
    module.mkdir(exist_ok=True)
    shutil.copy(RECEIVERS / "receiver.go", module)
    if not (module / "go.sum").exists():
        (module / "go.mod").write_text("module receiver\n")
        if subprocess.run(["go", "get", GO_LIBRARY], cwd=module).returncode:
            raise Missing(f"go cannot get {GO_LIBRARY}")
    subprocess.run(["go", "vet"], cwd=module, check=True)
    subprocess.run(["go", "build", "-o", "receiver"], cwd=module, check=True)
    return [module / "receiver"]


def commands(rust, tools):
    """The command of each runnable receiver, by language. `rust` is already built; `tools` holds the others' libraries."""
    tools.mkdir(parents=True, exist_ok=True)
    makers = {
        "Python": lambda: [sys.executable, RECEIVERS / "receiver.py"],
        "Node": lambda: node(tools),
        "Go": lambda: go(tools),
        "Rust": lambda: [rust],
    }
    found = {}
    for language, make in makers.items():
        try:
            found[language] = make()
        except Missing as reason:
            print(f"{language}: skipped, {reason}", flush=True)
    return found
