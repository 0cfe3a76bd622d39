"""axe on a page. The schemes differ in colours alone: in the dark one, only the rules about colours are asked."""

from axe_playwright_python.sync_playwright import Axe

SCHEMES = ("light", "dark")
# axe leaves this rule out unless it is asked for.
ALL = {"rules": {"target-size": {"enabled": True}}}
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
# The nodes of everything else take most of the time.
VIOLATIONS = {"resultTypes": ["violations"]}


def audit(page, scheme, shown):
    """Asserts that axe finds nothing on a page in this scheme. `shown` says what the page shows, for a failure."""
    results = Axe().run(page, options=(ALL if scheme == "light" else COLOURS) | VIOLATIONS)
    assert results.response["passes"], "axe has looked at something"
    assert results.violations_count == 0, f"{shown} ({scheme}): {results.generate_report()}"
