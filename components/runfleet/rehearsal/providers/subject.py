"""What a derivation may look at, and how it makes stable identifiers.

Identifiers are cut from SHA-256 of the URN (and a purpose), so that they are the
same in every run and different for every resource.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Subject:
    """A resource as a derivation sees it.

    Attributes:
        urn: Its URN.
        type: Its type token.
        name: Its logical name.
        inputs: Its inputs, with secrets replaced by the text ``[secret]``.
        provider: Inputs of its explicit provider; empty when it has none.
        read_id: The id that the program gave when it only reads the resource.
    """

    urn: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    provider: Mapping[str, Any]
    read_id: str = ""

    def digest(self, length: int, purpose: str = "") -> str:
        """Return ``length`` (at most 64) hexadecimal digits of this resource."""
        text = f"{self.urn}\0{purpose}" if purpose else self.urn
        return hashlib.sha256(text.encode()).hexdigest()[:length]

    def digits(self, length: int, purpose: str = "") -> str:
        """Return ``length`` decimal digits of this resource, the first not 0."""
        number = int(self.digest(32, purpose or "digits"), 16)
        return str(number % (9 * 10 ** (length - 1)) + 10 ** (length - 1))

    def uuid(self, purpose: str = "") -> str:
        """Return a UUID-shaped identifier of this resource."""
        text = self.digest(32, purpose)
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def letters(self, length: int, alphabet: str, purpose: str = "") -> str:
        """Return ``length`` characters of an alphabet for this resource."""
        number = int(self.digest(64, purpose or "letters"), 16)
        text = ""
        for _ in range(length):
            number, index = divmod(number, len(alphabet))
            text += alphabet[index]
        return text

    def text(self, key: str, default: str = "") -> str:
        """Return a string input, or ``default`` when it is absent or no string."""
        value = self.inputs.get(key)
        return value if isinstance(value, str) and value else default

    def physical_name(self, key: str = "name", separator: str = "-") -> str:
        """Return the name a provider would use: as given, by prefix, or automatic.

        Automatic names are the logical name and seven hexadecimal digits, as
        Pulumi's bridged providers make them; here the digits are derived.
        """
        given = self.text(key)
        if given:
            return given
        prefix = self.text(f"{key}Prefix")
        if prefix:
            return prefix + self.digest(26, "name-prefix")
        return f"{self.name}{separator}{self.digest(7, 'auto-name')}"


@dataclass(frozen=True)
class Derived:
    """The result of a derivation.

    Attributes:
        id: The resource's id, never empty.
        outputs: Outputs that are not simply inputs; they win over inputs.
    """

    id: str
    outputs: Mapping[str, Any]
