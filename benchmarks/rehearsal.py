"""Rehearsal of the PyTorch aws stack against a bare program.

The bare program registers the same resources with the same inputs, parents and
dependencies, read from the record of the rehearsal, under the same monitor. The
difference is what the toolkit's own program costs.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import measure, python, report

_OURS = """
from benchmarks.rehearsal import rehearse_ours
rehearse_ours({emulate})
"""
_BARE = """
from benchmarks.rehearsal import rehearse_bare
rehearse_bare({emulate})
"""
RECORDS = Path("out")


def run() -> None:
    """Print the ratio without and with the emulator."""
    for emulate in (False, True):
        ours, bare = measure(
            [
                python(_OURS.format(emulate=emulate)),
                python(_BARE.format(emulate=emulate)),
            ]
        )
        how = "with" if emulate else "without"
        report(
            f"rehearse stack aws {how} emulator",
            ours,
            "bare program",
            bare,
            "1.3 times, 500 MiB",
        )


def rehearse_ours(emulate: bool) -> None:
    """Rehearse the stack ``aws`` in this process."""
    from runfleet.rehearsal.runner import rehearse
    from runfleet.rehearsal.settings import read_project, read_stack_settings

    root = Path.cwd()
    settings = read_stack_settings(read_project(root), "aws")
    rehearse(
        root / "stacks",
        project="runfleet",
        stack="aws",
        config=settings.config,
        records=RECORDS,
        emulate=emulate,
        root=root,
    )


def rehearse_bare(emulate: bool) -> None:
    """Register what the record of stack ``aws`` holds, in this process."""
    from typing import Any

    import pulumi

    from runfleet.rehearsal.record import STACK_TYPE, read_record
    from runfleet.rehearsal.runner import rehearse

    record = read_record(RECORDS / "aws" / "record.json")

    def program() -> None:
        _import_sdks({resource.type for resource in record.resources})
        made: dict[str, Any] = {}
        for resource in record.resources:
            if resource.type == STACK_TYPE or resource.external:
                continue
            options = pulumi.ResourceOptions(
                parent=made.get(resource.parent),
                depends_on=[made[u] for u in resource.dependencies if u in made],
            )
            provider = resource.provider.rsplit("::", 1)[0]
            if resource.type.startswith("pulumi:providers:"):
                made[resource.urn] = pulumi.ProviderResource(
                    resource.type.rsplit(":", 1)[1],
                    resource.name,
                    dict(resource.inputs),
                    options,
                )
            elif resource.custom:
                options.provider = made.get(provider)
                made[resource.urn] = pulumi.CustomResource(
                    resource.type, resource.name, dict(resource.inputs), options
                )
            else:
                made[resource.urn] = pulumi.ComponentResource(
                    resource.type, resource.name, dict(resource.inputs), options
                )

    rehearse(
        program,
        project="runfleet",
        stack="aws",
        records=RECORDS,
        emulate=emulate,
        root=Path.cwd(),
    )


def _import_sdks(types: set[str]) -> None:
    """Import the SDK modules of resource types, as a program that names them does."""
    import importlib

    for token in sorted(types):
        package, module, _ = token.split(":")
        if package == "aws":
            name = f"pulumi_aws.{module.partition('/')[0]}"
        elif package == "kubernetes":
            group, _, version = module.rpartition("/")
            name = f"pulumi_kubernetes.{group.split('.')[0] or 'core'}.{version}"
        elif package == "github":
            name = "pulumi_github"
        else:
            continue
        try:
            found = importlib.import_module(name)
        except ModuleNotFoundError:  # custom resources have no module of their own
            continue
        for attribute in ("Vpc", "Bucket", "Role", "Namespace"):
            getattr(found, attribute, None)
