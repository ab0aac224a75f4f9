"""Conversion between Pulumi's wire format and plain data.

The SDK's own conversion builds assets, resource references and outputs, and is
asynchronous; a record needs none of that, only data. These two functions are the
hot path of a rehearsal, so they are written for speed and do nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from google.protobuf import struct_pb2


def to_data(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return a protobuf struct as plain data; marks of secrets are kept.

    Whole numbers become ``int``, because the wire knows only one kind of number.
    Members without a value are left out, as the engine leaves them out.
    """
    data: dict[str, Any] = {}
    for key, value in struct.fields.items():
        item = value_to_data(value)
        if item is not None:
            data[key] = item
    return data


def value_to_data(value: struct_pb2.Value) -> Any:
    """Return one protobuf value as plain data."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "struct_value":
        return to_data(value.struct_value)
    if kind == "list_value":
        return [value_to_data(item) for item in value.list_value.values]
    if kind == "bool_value":
        return value.bool_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    return None


def to_struct(data: Mapping[str, Any]) -> struct_pb2.Struct:
    """Return plain data as a protobuf struct."""
    struct = struct_pb2.Struct()
    fill(struct, data)
    return struct


def fill(struct: struct_pb2.Struct, data: Mapping[str, Any]) -> None:
    """Set members of a protobuf struct from plain data, replacing old ones."""
    for key, value in data.items():
        _set(struct.fields[key], value)


def _set(target: struct_pb2.Value, value: Any) -> None:
    if isinstance(value, str):
        target.string_value = value
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, (int, float)):
        target.number_value = value
    elif isinstance(value, Mapping):
        target.struct_value.Clear()
        fill(target.struct_value, cast("Mapping[str, Any]", value))
    elif isinstance(value, (list, tuple)):
        target.list_value.Clear()
        items = target.list_value.values
        for item in cast("list[Any]", value):
            _set(items.add(), item)
    else:
        target.null_value = struct_pb2.NULL_VALUE
