#!/usr/bin/env python3
"""Validates what our programs print as JSON against the schemas of docs/reference/json-output.md.

usage: json_output_reader.py PAGE PROGRAM... < OUTPUTS

A line of OUTPUTS is the heading of a schema, a tab and an output. Prints each fault; ends with 1 if there is one.
Faults are also an example that breaks its schema, a schema without an output, a command with --json without an
output, an object whose members a schema does not list, and a number that a schema does not limit to 2^53.
"""
import json, re, subprocess, sys
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

INPUT = "Messages to publish"  # the only schema that ignores other members

def blocks(page):
    """The heading of each section with JSON blocks, and the blocks: the schema, then an example."""
    for section in re.split(r"^##+ ", page, flags=re.M)[1:]:
        found = re.findall(r"^```json\n(.*?)^```$", section, re.M | re.S)
        if found:
            yield section.split("\n", 1)[0], [json.loads(block) for block in found]

def commands(command, words=()):
    """The names of the commands with --json."""
    names = [name["name"] for argument in command.get("arguments", []) for name in argument.get("names", [])]
    if "json" in names:
        yield " ".join(words)
    for subcommand in command.get("subcommands", []):
        yield from commands(subcommand, (*words, subcommand["commandName"]))

def loose(schema, isInput):
    """What a schema leaves open that it must not."""
    if isinstance(schema, list):
        return [fault for value in schema for fault in loose(value, isInput)]
    if not isinstance(schema, dict):
        return []
    faults = []
    if isinstance(schema.get("properties"), dict):
        if "required" not in schema or (schema.get("additionalProperties") is not False and not isInput):
            faults.append(f"members {list(schema['properties'])}: required or additionalProperties is missing")
        faults += [f"required member {name} is not listed" for name in set(schema.get("required", [])) - set(schema["properties"])]
    if schema.get("type") in ("integer", "number") and not schema.get("maximum", 2**54) <= 2**53:
        faults.append("a number has no maximum")
    return faults + [fault for value in schema.values() for fault in loose(value, isInput)]

def main():
    sections = dict(blocks(open(sys.argv[1], encoding="utf-8").read()))
    definitions = sections.pop("Shared definitions")[0]
    validators, faults = {}, [f"$defs: {fault}" for fault in loose(definitions, False)]
    for name, (schema, *examples) in sections.items():
        Draft202012Validator.check_schema(schema)
        faults += [f"{name}: {fault}" for fault in loose(schema, name == INPUT)]
        validators[name] = Draft202012Validator({"$defs": definitions, **schema})
        if len(examples) != 1:
            faults.append(f"{name}: has {len(examples)} examples")
        faults += [f"{name}: example: {error.message}" for value in examples for error in validators[name].iter_errors(value)]
    seen = {}
    for line in sys.stdin:
        name, output = line.split("\t", 1)
        seen[name] = True
        if name not in validators:
            faults.append(f"{name}: has no schema")
        elif error := best_match(validators[name].iter_errors(json.loads(output))):
            faults.append(f"{name}: {error.json_path}: {error.message}")
    required = {*sections}
    for program in sys.argv[2:]:
        dump = subprocess.run([program, "--experimental-dump-help"], check=True, stdout=subprocess.PIPE).stdout
        required.update(commands(json.loads(dump)["command"]))
    faults += [f"{name}: no output was validated" for name in sorted(required - set(seen))]
    print("\n".join(faults) or f"{len(sections)} schemas")
    return 1 if faults else 0

sys.exit(main())
