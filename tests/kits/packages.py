"""The packages from npm that the checks of the kits need: engines and validators of n8n and Zapier. Takes the path of a
folder for them."""

import json
import pathlib
import shutil
import subprocess
import sys
import tarfile

ENGINES = ("zapier-platform-core@19.1.0", "n8n-core@2.41.1")
# Only the descriptions of its nodes are used, so its many dependencies are not installed.
N8N_NODES = "n8n-nodes-base@2.41.2"


def are_possible():
    return shutil.which("node") and shutil.which("npm")


def install(tools):
    """Installs the packages, once. Returns the descriptions of n8n's nodes."""
    tools.mkdir(parents=True, exist_ok=True)
    if not all((tools / "node_modules" / engine.split("@")[0] / "package.json").exists() for engine in ENGINES):
        flags = ["--silent", "--no-save", "--ignore-scripts", "--no-audit", "--prefix", tools]
        subprocess.run(["npm", "install", *flags, *ENGINES], check=True)
    descriptions = tools / "nodes.json"
    if not descriptions.exists():
        pack = ["npm", "pack", "--silent", N8N_NODES]
        packed = subprocess.run(pack, cwd=tools, check=True, capture_output=True, text=True)
        archive = tools / packed.stdout.split()[-1]
        with tarfile.open(archive) as files, files.extractfile("package/dist/types/nodes.json") as file:
            descriptions.write_bytes(file.read())
        archive.unlink()
    return json.loads(descriptions.read_text())


if __name__ == "__main__":
    if are_possible():
        install(pathlib.Path(sys.argv[1]).resolve())
