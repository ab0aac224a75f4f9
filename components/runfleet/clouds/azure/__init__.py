"""Azure: the seven rooms on AKS, Entra workload identity, Blob storage and ACR.

``floor.AzureFloor`` is what :func:`runfleet.clouds.floor_for` makes. The rooms are
imported when they are first used, so that reading the names of Azure objects
(:mod:`runfleet.clouds.azure.names`) does not load the SDK.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runfleet.clouds.azure.autoscaler import Autoscaler as Autoscaler
    from runfleet.clouds.azure.budget import Budget as Budget
    from runfleet.clouds.azure.cluster import Cluster as Cluster
    from runfleet.clouds.azure.identity import RunnerIdentity as RunnerIdentity
    from runfleet.clouds.azure.network import Network as Network
    from runfleet.clouds.azure.nodes import NodePool as NodePool
    from runfleet.clouds.azure.stores import Stores as Stores

_ROOMS = {
    "Autoscaler": "autoscaler",
    "Budget": "budget",
    "Cluster": "cluster",
    "Network": "network",
    "NodePool": "nodes",
    "RunnerIdentity": "identity",
    "Stores": "stores",
}

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "Autoscaler",
    "Budget",
    "Cluster",
    "Network",
    "NodePool",
    "RunnerIdentity",
    "Stores",
]


def __getattr__(name: str) -> Any:
    """Import a room when it is first asked for."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_ROOMS[name]}"), name)
