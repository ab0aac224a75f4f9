"""Google Cloud: the seven rooms on GKE, IAM, Cloud Storage and Artifact Registry.

``floor.GcpFloor`` is what :func:`runfleet.clouds.floor_for` makes. The rooms are
imported when they are first used, so that reading the names of Google Cloud objects
(:mod:`runfleet.clouds.gcp.names`) does not load the SDK.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runfleet.clouds.gcp.autoscaler import Autoscaler as Autoscaler
    from runfleet.clouds.gcp.budget import Budget as Budget
    from runfleet.clouds.gcp.cluster import Cluster as Cluster
    from runfleet.clouds.gcp.identity import RunnerIdentity as RunnerIdentity
    from runfleet.clouds.gcp.network import Network as Network
    from runfleet.clouds.gcp.nodes import NodePool as NodePool
    from runfleet.clouds.gcp.stores import Stores as Stores

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
