"""OSDC's ``clusters.yaml`` becomes cells, runner groups and pool settings.

What the file does not say is chosen here and reported: who pays, in which account,
in which zones. Who pays is in the first part of a cluster's id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from runfleet.importers import osdc_keys
from runfleet.importers.report import Entry, Kind, Log, unknown
from runfleet.spec.source import Path, Source, dotted, nearest

LF_CLUSTERS = ("lf-prod-aws-ue1", "lf-prod-aws-ue2")
"""The production clusters that the Linux Foundation pays for."""

RUNNER_CPU = 0.75
RUNNER_MEMORY = "1GiB"
"""What a runner pod requests: osdc/modules/arc-runners/templates/runner.yaml.tpl."""

_ACCOUNTS = {
    "lf": ("linux-foundation", "391835788720"),
    "meta": ("meta", "308535385114"),
}
"""Funder and AWS account by the first part of a cluster id (pytorch/ci-infra b1ce4a6,
folders ``ali/aws/<account>`` and ``osdc/docs``)."""

_ZONES = {"us-west-1": ("us-west-1a", "us-west-1c")}
"""Zones of regions that do not give an account zones a, b and c."""

_BASE_DEFAULTS: dict[str, Any] = {
    "vpc_cidr": "10.0.0.0/16",
    "base_node_count": 3,
    "base_node_instance_type": "m5.xlarge",
    "single_nat_gateway": False,
}
"""What ``cluster-config.py`` uses where neither cluster nor defaults say."""

_NODEPOOL_KEYS = (
    "gpu_consolidate_after",
    "cpu_consolidate_after",
    "baremetal_consolidate_after",
    "gpu_disruption_budget",
    "cpu_disruption_budget",
)


@dataclass
class Clusters:
    """What the wanted clusters of a ``clusters.yaml`` say.

    Attributes:
        cells: Cells in fleet-file form, by name.
        places: Where each was defined.
        ids: Cluster id of each cell.
        serving: Cells whose clusters have runner classes.
        organization: GitHub organisation.
        env: Environment, from the cluster ids.
        warm_limit: Most placeholders per class, if a cluster sets one.
        nodepools: The settings under ``nodepools``.
    """

    cells: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    places: dict[str, tuple[Source, Path]] = field(
        default_factory=dict[str, tuple[Source, Path]]
    )
    ids: dict[str, str] = field(default_factory=dict[str, str])
    serving: list[str] = field(default_factory=list[str])
    organization: str = ""
    env: str = "prod"
    warm_limit: int | None = None
    nodepools: dict[str, str] = field(default_factory=dict[str, str])


def read_clusters(
    source: Source, wanted: Sequence[str], account: str, log: Log
) -> Clusters:
    """Read the wanted clusters.

    Args:
        source: ``clusters.yaml``.
        wanted: Ids of the clusters to import; the first becomes cell ``aws``.
        account: AWS account of the clusters; empty where their ids tell it.
        log: Takes the report and the problems.
    """
    found = Clusters()
    top = Entry(log, source, (), source.data)
    defaults_data: object = top.raw("defaults")
    defaults = Entry(log, source, ("defaults",), defaults_data or {})
    clusters = Entry(log, source, ("clusters",), top.raw("clusters") or {})
    top.leave({}, ("defaults", "clusters"))
    _report(source, ("defaults",), defaults_data, log)
    names = [str(key) for key in _mapping(top.raw("clusters"))]
    if not wanted:
        log.problems.append(source.problem(("clusters",), "no cluster is asked for"))
    for cluster_id in dict.fromkeys(wanted):
        if cluster_id not in names:
            log.problems.append(
                source.problem(
                    ("clusters",),
                    "has no cluster of this id",
                    found=cluster_id,
                    allowed=", ".join(names),
                    nearest=nearest(cluster_id, names),
                )
            )
            continue
        data: object = clusters.raw(cluster_id)
        path: Path = ("clusters", cluster_id)
        _report(source, path, data, log)
        cluster = Entry(log, source, path, data)
        _Reader(found, cluster_id, cluster, defaults, log).read(account)
    for name in names:
        if name not in wanted:
            log.note(Kind.NOT_CARRIED, source, ("clusters", name), "not asked for")
    return found


class _Reader:
    """Reads one cluster: a dotted path in the cluster wins over the defaults."""

    def __init__(
        self,
        found: Clusters,
        cluster_id: str,
        cluster: Entry,
        defaults: Entry,
        log: Log,
    ) -> None:
        self._found, self._id, self._log = found, cluster_id, log
        self._cluster, self._defaults = cluster, defaults

    def read(self, account: str) -> None:
        found, cluster_id = self._found, self._id
        name = "aws" if not found.cells else f"aws-{cluster_id.split('-')[-1]}"
        if name in found.cells:
            name = f"aws-{cluster_id}"[:20].rstrip("-")
        region = self._text("region") or ""
        group = self._text("arc-runners.runner_group") or "default"
        self._organization()
        self._environment()
        cell: dict[str, Any] = {"provider": "aws"}
        funder, cell["account"] = self._account(account)
        cell["region"] = region
        cell["zones"] = self._zones(region)
        cell["cluster"] = self._text("cluster_name") or cluster_id
        nat = "single" if self._base("single_nat_gateway", bool) else "per-zone"
        cell["network"] = {"cidr": self._base("vpc_cidr", str), "nat": nat}
        cell["api_access"] = {"mode": "private"}
        self._chosen(
            (),
            "api_access is private; the source's API endpoint is open to 0.0.0.0/0",
        )
        admins = self._lookup("access_config.cluster_admin_role_names") or (
            self._lookup("base.access_config.cluster_admin_role_names")
        )
        if isinstance(admins, list):
            cell["admins"] = [str(admin) for admin in cast("list[object]", admins)]
        cell["base_nodes"] = {
            "machine": self._base("base_node_instance_type", str),
            "count": self._base("base_node_count", int),
        }
        cell["funder"] = funder
        prefix = self._text("arc-runners.runner_name_prefix")
        if prefix:
            cell["label_prefix"] = prefix
        cell["runner_group"] = group
        self._modules(name)
        self._shared_settings()
        found.cells[name] = cell
        found.places[name] = (self._cluster.source, self._cluster.path)
        found.ids[name] = cluster_id

    def _organization(self) -> None:
        url = self._text("arc-runners.github_config_url") or ""
        organization = url.removeprefix("https://github.com/").strip("/")
        path = "arc-runners.github_config_url"
        if not url:
            self._problem("arc-runners", "has no github_config_url", "")
        elif not url.startswith("https://github.com/") or "/" in organization:
            allowed = "https://github.com/<organisation>"
            self._problem(path, "is not an organisation's address", url, allowed)
        elif self._found.organization not in ("", organization):
            message = "differs from the other clusters"
            self._problem(path, message, url, self._found.organization)
        else:
            self._found.organization = organization

    def _environment(self) -> None:
        parts = self._id.split("-")
        env = parts[1] if len(parts) > 1 else "prod"
        if self._found.cells and env != self._found.env:
            message = f"is {env}, the clusters before it are {self._found.env}"
            self._problem("", message, self._id, "clusters of one environment")
        self._found.env = env

    def _account(self, given: str) -> tuple[str, str]:
        owner = self._id.split("-")[0]
        funder, account = _ACCOUNTS.get(owner, (owner, ""))
        if given:
            self._chosen((), f"funder {funder}, by the id's first part")
        elif account:
            why = f"funder {funder} and account {account}, by the id's first part"
            self._chosen((), why)
        else:
            message = "has no account, and its id does not tell it: give the account"
            self._problem("", message, self._id)
        return funder, given or account

    def _zones(self, region: str) -> list[str]:
        zones = list(_ZONES.get(region, [f"{region}{letter}" for letter in "abc"]))
        why = f"zones {', '.join(zones)}; the source takes what the account has"
        self._chosen(("region",), why)
        return zones

    def _modules(self, cell: str) -> None:
        modules = self._cluster.texts("modules")
        if any(module.startswith("arc-runners") for module in modules):
            self._found.serving.append(cell)
        else:
            self._chosen(("modules",), "serves no runner class: no module arc-runners")
        known = osdc_keys.MODULES_CARRIED | osdc_keys.MODULES_NOT_CARRIED.keys()
        for index, module in enumerate(modules):
            path = (*self._cluster.path, "modules", index)
            why = osdc_keys.MODULES_NOT_CARRIED.get(module)
            if why is not None:
                kind = Kind.NOT_CARRIED
            elif module in osdc_keys.MODULES_CARRIED:
                continue
            else:
                kind, why = Kind.UNKNOWN, unknown(module, known)
            self._log.note(kind, self._cluster.source, path, why, module)

    def _shared_settings(self) -> None:
        """Take settings that a fleet has once: the first cluster's are used."""
        for key in _NODEPOOL_KEYS:
            value = self._lookup(f"nodepools.{key}")
            if value is None:
                continue
            first = self._found.nodepools.setdefault(key, str(value))
            if first != str(value):
                why = f"pools are the same in all cells: {first} of the first cluster"
                path = (*self._cluster.path, "nodepools", key)
                source = self._cluster.source
                self._log.note(Kind.NOT_CARRIED, source, path, why, value)
        limit = self._lookup("proactive_capacity_max")
        if isinstance(limit, int) and not isinstance(limit, bool):
            known = self._found.warm_limit
            self._found.warm_limit = limit if known is None else min(limit, known)

    def _base(self, key: str, kind: type) -> Any:
        """Return a setting of ``base``, which stands flat under ``defaults``."""
        value = self._lookup(f"base.{key}")
        if value is None:
            value = self._lookup(key)
        if value is None:
            value = _BASE_DEFAULTS[key]
            if key != "single_nat_gateway":
                self._chosen((), f"{key} {value}, the source's own fallback")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            wanted = {str: "text", int: "a whole number", bool: "true or false"}[kind]
            self._problem(f"base.{key}", f"is not {wanted}", str(value))
            return _BASE_DEFAULTS[key]
        return value

    def _text(self, path: str) -> str | None:
        value = self._lookup(path)
        if value is not None and not isinstance(value, str):
            self._problem(path, "is not text", str(value))
            return None
        if value is None and path in ("region", "cluster_name"):
            self._problem(path, "is missing", "")
        return value

    def _lookup(self, path: str) -> object:
        first, *rest = path.split(".")
        for entry in (self._cluster, self._defaults):
            value: object = entry.raw(first)
            for part in rest:
                value = _mapping(value).get(part)
            if value is not None:
                return value
        return None

    def _problem(self, path: str, message: str, found: str, allowed: str = "") -> None:
        at = (*self._cluster.path, *(path.split(".") if path else ()))
        self._log.problems.append(
            self._cluster.source.problem(at, message, found=found, allowed=allowed)
        )

    def _chosen(self, path: Path, why: str) -> None:
        at = (*self._cluster.path, *path)
        self._log.note(Kind.CHOSEN, self._cluster.source, at, why)


def _report(source: Source, path: Path, data: object, log: Log) -> None:
    """Report every value below a path that does not become part of the fleet file."""
    for relative, value in _leaves(data, ()):
        spelled = dotted(relative)
        if spelled in osdc_keys.CARRIED:
            continue
        why = osdc_keys.reason(spelled)
        if why is not None:
            log.note(Kind.NOT_CARRIED, source, (*path, *relative), why, value)
        else:
            names = osdc_keys.CARRIED | osdc_keys.NOT_CARRIED.keys()
            why = unknown(spelled, names)
            log.note(Kind.UNKNOWN, source, (*path, *relative), why, value)


def _leaves(data: object, path: Path) -> list[tuple[Path, object]]:
    if not isinstance(data, Mapping) or not data:
        return [(path, data)] if path else []
    found: list[tuple[Path, object]] = []
    for key, value in cast("Mapping[object, object]", data).items():
        found += _leaves(value, (*path, str(key)))
    return found


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
