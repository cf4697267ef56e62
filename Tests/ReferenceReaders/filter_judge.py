"""Evaluates filters of subscribers by the rules of docs/reference/pubnub-filters.md.

Reads a line of JSON for each case: the filter as a tree, and payload and meta as JSON texts. Prints true or false for
each. The tree comes from the test, so that this program shares no parser with the server. Needs only the standard
library.
"""

import json
import math
import re
import sys


class Real(float):
    """A number with a fraction or an exponent, which keeps its text."""

    def __new__(cls, text):
        number = super().__new__(cls, text)
        number.text = text
        return number


def read(text):
    return json.loads(text, parse_float=Real)


def fits(number):
    return -(2**63) <= number < 2**63


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def result(number):
    """The result of arithmetic: a number beyond 64 bits is a double, and one that is not finite is null."""
    if isinstance(number, int) and fits(number):
        return number
    return float(number) if math.isfinite(number) else None


def whole(value):
    if not is_number(value):
        return None
    return int(value) if value == int(value) and fits(int(value)) else None


def is_true(value):
    return value is True or value not in (None, False, "") and not (is_number(value) and value == 0)


def pair(a, b):
    """Both as they are if they are whole, otherwise as doubles."""
    return (a, b) if isinstance(a, int) and isinstance(b, int) else (float(a), float(b))


def equal(a, b):
    if is_number(a) and is_number(b):
        a, b = pair(a, b)
        return a == b
    return type(a) is type(b) and not isinstance(a, (list, dict)) and a == b


def arithmetic(operator, a, b):
    if not (is_number(a) and is_number(b)):
        return None
    if operator in "|^&":
        a, b = whole(a), whole(b)
        if a is None or b is None:
            return None
        return a | b if operator == "|" else a ^ b if operator == "^" else a & b
    a, b = pair(a, b)
    if operator in "/%" and b == 0:
        return None
    if operator == "+":
        return result(a + b)
    if operator == "-":
        return result(a - b)
    if operator == "*":
        return result(a * b)
    if operator == "/":
        return result(a // b if isinstance(a, int) and a % b == 0 else a / b)
    if isinstance(a, int):
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    return result(math.fmod(a, b))


def fold(text):
    return "".join(character.lower() for character in text)


def pattern(characters):
    """A regular expression for pairs of a character and whether a backslash is before it."""
    return "".join(".*" if c == "*" and not escaped else re.escape(fold(c)) for c, escaped in characters)


def escapes(text):
    characters, escaped = [], False
    for character in text:
        if character == "\\" and not escaped:
            escaped = True
        else:
            characters.append((character, escaped))
            escaped = False
    return characters


def like(value, expression):
    if isinstance(value, list):
        return any(isinstance(each, str) and like(each, expression) for each in value)
    return isinstance(value, str) and re.fullmatch(expression, fold(value), re.DOTALL) is not None


def contains(value, part):
    if isinstance(value, list):
        return any(equal(each, part) for each in value)
    if is_number(part):
        part = part.text if isinstance(part, Real) else repr(part)
    return isinstance(value, str) and isinstance(part, str) and part in value


def member(value, steps):
    for step in steps:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    return value


def evaluate(tree, sources):
    kind, *rest = tree
    if kind == "constant":
        return read(rest[0])
    if kind == "text":
        return "".join(character for character, _ in rest[0])
    if kind == "member":
        return member(sources[rest[0]], rest[1])
    if kind == "list":
        return [evaluate(each, sources) for each in rest[0]]
    if kind == "unary":
        value = evaluate(rest[1], sources)
        if rest[0] == "!":
            return not is_true(value)
        if rest[0] == "-":
            return arithmetic("-", 0, value)
        value = whole(value)
        return None if value is None else ~value
    operator, left, right = rest
    a, b = evaluate(left, sources), evaluate(right, sources)
    if operator == "||":
        return is_true(a) or is_true(b)
    if operator == "&&":
        return is_true(a) and is_true(b)
    if operator == "==":
        return equal(a, b)
    if operator == "!=":
        return not equal(a, b)
    if operator == "CONTAINS":
        return contains(a, b)
    if operator == "LIKE":
        characters = right[1] if right[0] == "text" else escapes(b) if isinstance(b, str) else None
        return characters is not None and like(a, pattern(characters))
    if operator in ("<", "<=", ">", ">="):
        if not (is_number(a) and is_number(b)):
            return False
        a, b = pair(a, b)
        return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]
    return arithmetic(operator, a, b)


for line in sys.stdin:
    case = json.loads(line)
    sources = {"data": read(case["payload"]), "meta": read(case["meta"])}
    print(json.dumps(is_true(evaluate(case["tree"], sources))))
