"""IBM Cloud's resources: a Terraform provider, parameterised when the program runs.

IBM publishes no Pulumi provider. Pulumi's ``terraform-provider`` plugin loads any
Terraform provider once it is *parameterised* with its name and version, so each
resource here carries a package reference that :func:`package` registers with the
engine (pulumi/pulumi-terraform-bridge, ``dynamic/parameterize``). There is no
``packages:`` section in ``Pulumi.yaml``, because that would generate a second SDK
beside these classes.

The classes of :mod:`runfleet.clouds.ibm.resources` are thin: typed arguments in, wire
names out. Wire names are camelCase, nested ones too, and the SDK translates nothing
for a package without a generated SDK; :func:`wire` does, and a test compares every
name with the provider's own schema, because the provider drops a misspelt optional
argument without a word.

Some arguments take effect only when the thing is made: the provider reports no
difference when they change later (``DiffSuppressFunc: flex.ApplyOnce`` in
IBM-Cloud/terraform-provider-ibm 2.5.0). Each class lists them in ``APPLY_ONCE``, and
:class:`IbmResource` turns them into a replacement trigger, which the engine compares
itself; it is set from the first deployment, because a trigger that was never recorded
replaces nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import pulumi

PROVIDER_VERSION = "2.5.0"
"""Version of IBM-Cloud/terraform-provider-ibm whose schema the classes follow."""

BRIDGE_VERSION = "1.4.0"
"""Version of Pulumi's ``terraform-provider`` plugin: the one that a public hand-written
program of the same pattern uses; the newest is not known."""

PARAMETER = base64.b64encode(
    json.dumps(
        {
            "remote": {
                "url": "registry.opentofu.org/ibm-cloud/ibm",
                "version": PROVIDER_VERSION,
            }
        },
        separators=(",", ":"),
    ).encode()
).decode()
"""What the plugin is parameterised with; the namespace in the address is lower case
(pulumi-terraform-bridge, ``dynamic/parameterize/value.go``)."""


async def package() -> str:
    """Register the package with the engine and return its reference.

    The SDK keeps the answer for the deployment, so asking for each resource is cheap.
    A coroutine can be awaited once: every resource gets its own.
    """
    return await pulumi.runtime.register_package(
        base_provider_name="terraform-provider",
        base_provider_version=BRIDGE_VERSION,
        base_provider_download_url="",
        package_name="ibm",
        package_version=PROVIDER_VERSION,
        base64_parameter=PARAMETER,
    )


def camel(name: str) -> str:
    """Return the wire name of an argument."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def wire(value: Any) -> Any:
    """Return a value as it goes to the provider.

    Data classes become objects with wire names, without their unset fields. Mappings
    keep their keys: they are labels.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {
            camel(field.name): wire(found)
            for field in fields(value)
            if (found := getattr(value, field.name)) is not None
        }
    if isinstance(value, (list, tuple)):
        return [wire(item) for item in cast("Sequence[Any]", value)]
    return value


class IbmResource(pulumi.CustomResource):
    """A resource of the parameterised package.

    Attributes:
        TOKEN: Its type token.
        OUTPUTS: What the provider computes, beside the arguments, as attribute names.
        APPLY_ONCE: Arguments whose later changes the provider ignores.
    """

    TOKEN: ClassVar[str]
    OUTPUTS: ClassVar[tuple[str, ...]] = ()
    APPLY_ONCE: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        resource_name: str,
        arguments: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Logical name.
            arguments: Arguments by attribute name; ``None`` for unset ones.
            opts: Pulumi's options.
        """
        given = {
            camel(name): wire(value)
            for name, value in arguments.items()
            if value is not None
        }
        # The SDK makes attributes of the properties that are listed, so outputs are
        # listed without a value.
        computed = {camel(name): None for name in self.OUTPUTS}
        super().__init__(
            self.TOKEN,
            resource_name,
            {**computed, **given},
            _with_trigger(opts, given, self.APPLY_ONCE),
            package_ref=package(),
        )

    @classmethod
    def existing(
        cls,
        resource_name: str,
        id: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> Self:
        """Read a thing that exists already, without managing it."""
        found = cls.__new__(cls)
        IbmResource.__init__(
            found,
            resource_name,
            {},
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(id=id)),
        )
        return found

    if not TYPE_CHECKING:
        # Hidden from type checkers, so that only declared outputs can be read.

        def __getattr__(self, name: str) -> Any:
            """Return an output under its attribute name."""
            try:
                return self.__dict__[camel(name)]
            except KeyError:
                raise AttributeError(
                    f"{type(self).__name__} has no attribute {name!r}"
                ) from None


def _with_trigger(
    opts: pulumi.ResourceOptions | None,
    given: Mapping[str, Any],
    apply_once: Sequence[str],
) -> pulumi.ResourceOptions | None:
    """Add what forces a replacement when an argument changes that is applied once.

    The trigger is one text, so that a change of its shape is a change of its value. An
    existing thing has no arguments and so no trigger.
    """
    held = {camel(name): given.get(camel(name)) for name in apply_once}
    if not apply_once or not given:
        return opts
    trigger = pulumi.Output.json_dumps(held, sort_keys=True)
    return pulumi.ResourceOptions.merge(
        opts, pulumi.ResourceOptions(replacement_trigger=trigger)
    )
