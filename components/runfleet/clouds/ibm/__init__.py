"""IBM Cloud: the seven rooms on its Kubernetes Service, VPC, IAM and object storage.

``floor.IbmFloor`` is what :func:`runfleet.clouds.floor_for` makes. The rooms are
imported when they are first used, so that reading the names of IBM Cloud objects
(:mod:`runfleet.clouds.ibm.names`) loads nothing more.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runfleet.clouds.ibm.autoscaler import Autoscaler as Autoscaler
    from runfleet.clouds.ibm.budget import Budget as Budget
    from runfleet.clouds.ibm.cluster import Cluster as Cluster
    from runfleet.clouds.ibm.identity import RunnerIdentity as RunnerIdentity
    from runfleet.clouds.ibm.network import Network as Network
    from runfleet.clouds.ibm.nodes import NodePool as NodePool
    from runfleet.clouds.ibm.stores import Stores as Stores

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
