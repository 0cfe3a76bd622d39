"""The record of a rehearsal that passed: the digest of its templates. A test of the tree compares it."""

import hashlib
from pathlib import Path

RECORD = Path("infra/deploy/rehearsed")


def digest():
    """Digests the templates' lines, as tests/tidy/rehearsal.rs does. Comments, descriptions, empty
    lines and routes do not count."""
    digest = hashlib.sha256()
    for path in [Path("template.yaml"), *sorted(Path("infra").glob("*.yaml"))]:
        for line in path.read_text().splitlines():
            if line.strip() and not line.lstrip().startswith(("#", "Description: ")) and "{ Type: HttpApi, " not in line:
                digest.update(line.rstrip().encode() + b"\n")
    return digest.hexdigest()


def write(rehearsed):
    RECORD.write_text(rehearsed + "\n")
