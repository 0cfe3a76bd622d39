"""The packages from npm that the checks of assistants need: Node 22, both generations of the TypeScript client, the
Inspector and the conformance tool. Takes the path of a folder for them."""

import json
import pathlib
import platform
import shutil
import subprocess
import sys

# The clients need a newer Node than most machines have.
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
NODE = f"node-{platform.system().lower()}-{MACHINES.get(platform.machine(), platform.machine())}"
WANTED = {
    NODE: "22",
    "@modelcontextprotocol/client": "2.4.0",
    "@modelcontextprotocol/sdk": "1.32.2",
    "@modelcontextprotocol/inspector": "2.12.0",
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
}


def are_possible():
    return shutil.which("npm")


def is_installed(tools, package, version):
    manifest = tools / "node_modules" / package / "package.json"
    return manifest.exists() and f"{json.loads(manifest.read_text())['version']}.".startswith(f"{version}.")


def install(tools):
    """Installs the packages, once."""
    tools.mkdir(parents=True, exist_ok=True)
    if not all(is_installed(tools, package, version) for package, version in WANTED.items()):
        flags = ["--silent", "--no-save", "--ignore-scripts", "--no-audit", "--prefix", tools]
        wanted = [f"{package}@{version}" for package, version in WANTED.items()]
        subprocess.run(["npm", "install", *flags, *wanted], check=True)


def node(tools):
    """The path of Node 22."""
    return tools / "node_modules" / NODE / "bin" / "node"


def program(tools, package):
    """The command of a package's program of the same name."""
    folder = tools / "node_modules" / "@modelcontextprotocol" / package
    return [node(tools), folder / json.loads((folder / "package.json").read_text())["bin"][package]]


if __name__ == "__main__":
    if are_possible():
        install(pathlib.Path(sys.argv[1]).resolve())
