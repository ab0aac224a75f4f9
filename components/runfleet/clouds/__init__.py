"""The clouds: one folder each, with the same seven rooms.

``network``, ``cluster``, ``nodes``, ``autoscaler``, ``identity``, ``stores`` and
``budget`` hold a component each; :mod:`runfleet.clouds.protocols` says what each
must give. :func:`floor_for` is the one place where a cloud is picked: it imports
that cloud's folder, and so that cloud's SDK, and no other.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from runfleet.errors import MissingError
from runfleet.spec.cells import Provider

if TYPE_CHECKING:
    from runfleet.clouds.protocols import Floor


def floor_for(provider: Provider) -> Floor:
    """Return the rooms of a cloud.

    Args:
        provider: The cloud.

    Raises:
        MissingError: The cloud's SDK is not installed.
    """
    try:
        module = importlib.import_module(f"runfleet.clouds.{provider}.floor")
    except ModuleNotFoundError as error:
        raise MissingError(
            f"the SDK of {provider} is not installed ({error.name})",
            f"pip install 'runfleet[{provider}]'",
        ) from None
    return cast("Floor", getattr(module, f"{provider.capitalize()}Floor")())
