"""The page of a service's endpoints, made from its OpenAPI document; it loads nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from evenhand.report.render import fill


def api_page(document: dict[str, Any]) -> str:
    """Return the page of an OpenAPI document."""
    asked = [
        {
            "what": f"{method.upper()} {path}",
            "told": told["description"],
            "role": told["tags"][0],
            "parameters": [one["name"] for one in told.get("parameters", [])],
            "body": _body(told.get("requestBody")),
            "answer": _body(told["responses"]["200"]),
        }
        for path, methods in document["paths"].items()
        for method, told in methods.items()
    ]
    shapes = [
        {
            "name": name,
            "told": shape.get("description", ""),
            "fields": [
                {
                    "name": field,
                    "kind": kind_of(told),
                    "needed": field in shape.get("required", []),
                    "told": told.get("description", ""),
                }
                for field, told in shape["properties"].items()
            ],
        }
        for name, shape in document["components"]["schemas"].items()
    ]
    problems = document["paths"]["/decide"]["post"]["responses"]
    return fill(
        "api.html.j2",
        asked=asked,
        shapes=shapes,
        problems={status: told["description"] for status, told in problems.items() if status != "200"},
        policy="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    )


def _body(told: Any) -> str:
    content = (told or {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    return kind_of(schema) if {"anyOf", "$ref"} & schema.keys() else ""


def kind_of(schema: dict[str, Any]) -> str:
    """Return the type of a value in words.

    >>> kind_of({"anyOf": [{"type": "array", "items": {"$ref": "#/…/Person"}}, {"type": "null"}]})
    'list of Person or null'
    >>> kind_of({"type": "object", "additionalProperties": {"type": "number"}})
    'object of number'
    """
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(kind_of, schema["anyOf"])))
    for kind, word, of in (("array", "list", "items"), ("object", "object", "additionalProperties")):
        if schema.get("type") == kind and isinstance(schema.get(of), dict):
            return f"{word} of {kind_of(schema[of])}"
    return str(schema.get("type", "anything"))
