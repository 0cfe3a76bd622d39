"""Expressions of Make, as far as the kit uses them: texts with `{{expression}}`, evaluated as Make's documentation of
custom apps says (JavaScript in Make, text functions, processing of empty values)."""

import hashlib
import re

EXPRESSION = re.compile(r"\{\{(.*?)\}\}")
TOKEN = re.compile(r"\s*('[^']*'|[A-Za-z_][\w.]*|[(),])")


def replace(text, search, by):
    """A search text between slashes is a regular expression."""
    pattern = re.fullmatch(r"/(.*)/([gim]*)", search)
    if not pattern:
        return text.replace(search, by)
    return re.sub(pattern[1], by, text, count=0 if "g" in pattern[2] else 1)


FUNCTIONS = {
    "if": lambda condition, then, otherwise: then if condition else otherwise,
    "ifempty": lambda value, default: default if value in (None, "") else value,
    "replace": replace,
    "sha256": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "trim": lambda text: text.strip(),
}


def parse(source):
    """The tree of an expression: ("text", value), ("name", path), or a function's name with its arguments."""
    assert re.fullmatch(rf"(?:{TOKEN.pattern})*\s*", source), f"an unknown expression: {source}"
    tokens = [token for token in TOKEN.findall(source) if token != ","]

    def term():
        token = tokens.pop(0)
        if token.startswith("'"):
            return "text", token[1:-1]
        if tokens[:1] != ["("]:
            return "name", token
        assert token in FUNCTIONS, f"an unknown function: {token}"
        arguments = []
        tokens.pop(0)
        while tokens[0] != ")":
            arguments.append(term())
        tokens.pop(0)
        return token, arguments

    tree = term()
    assert not tokens, f"an unknown expression: {source}"
    return tree


def names_in(text):
    """The names in the expressions of a text."""

    def inner(tree):
        kind, value = tree
        if kind in ("text", "name"):
            return [value] if kind == "name" and value != "undefined" else []
        return [name for argument in value for name in inner(argument)]

    sources = EXPRESSION.findall(text)
    assert text.count("{{") == len(sources), f"an open expression: {text}"
    return [name for source in sources for name in inner(parse(source))]


def evaluate(tree, scope):
    """The value of a tree. What is undefined or unknown is None."""
    kind, value = tree
    if kind == "text":
        return value
    if kind != "name":
        return FUNCTIONS[kind](*(evaluate(argument, scope) for argument in value))
    found = scope
    for name in value.split("."):
        found = (found or {}).get(name)
    return found


def filled(value, scope):
    """A value with the values of its expressions. A member without a value is left out, as Make does."""
    if isinstance(value, dict):
        members = {name: filled(inner, scope) for name, inner in value.items()}
        return {name: inner for name, inner in members.items() if inner is not None}
    if not isinstance(value, str):
        return value
    whole = EXPRESSION.fullmatch(value)
    if whole:
        return evaluate(parse(whole[1]), scope)
    return EXPRESSION.sub(lambda match: str(evaluate(parse(match[1]), scope)), value)
