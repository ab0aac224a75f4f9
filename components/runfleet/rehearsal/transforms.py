"""Resource options on their way into a transform and back.

A transform sees a resource's options in a message of its own
(``TransformResourceOptions``); what it returns replaces the options of the
registration. The generated protobuf classes type each field name as a literal, so
messages are ``Any`` where fields are copied by name.
"""

from __future__ import annotations

from typing import Any

from pulumi.runtime.proto import alias_pb2, resource_pb2


def options_of(request: Any) -> resource_pb2.TransformResourceOptions:
    """Return the options of a registration in the form that transforms get."""
    options = resource_pb2.TransformResourceOptions(
        depends_on=sorted(request.dependencies),
        ignore_changes=request.ignoreChanges,
        replace_on_changes=request.replaceOnChanges,
        version=request.version,
        aliases=[
            *request.aliases,
            *(alias_pb2.Alias(urn=urn) for urn in request.aliasURNs),
        ],
        provider=request.provider,
        plugin_download_url=request.pluginDownloadURL,
        deleted_with=request.deletedWith,
        additional_secret_outputs=request.additionalSecretOutputs,
        providers=dict(request.providers),
        replace_with=request.replace_with,
    )
    setattr(options, "import", request.importId)
    if request.HasField("protect"):
        options.protect = request.protect
    if request.HasField("retainOnDelete"):
        options.retain_on_delete = request.retainOnDelete
    if request.deleteBeforeReplaceDefined:
        options.delete_before_replace = request.deleteBeforeReplace
    if request.HasField("customTimeouts"):
        options.custom_timeouts.CopyFrom(request.customTimeouts)
    if request.HasField("replacement_trigger"):
        options.replacement_trigger.CopyFrom(request.replacement_trigger)
    if request.HasField("hooks"):
        options.hooks.CopyFrom(request.hooks)
    return options


def apply_options(request: Any, options: Any) -> None:
    """Write transformed options back; parent, type and name never change."""
    for target, values in (
        (request.dependencies, options.depends_on),
        (request.ignoreChanges, options.ignore_changes),
        (request.replaceOnChanges, options.replace_on_changes),
        (request.additionalSecretOutputs, options.additional_secret_outputs),
        (request.replace_with, options.replace_with),
    ):
        found = sorted(values) if target is request.dependencies else list(values)
        del target[:]
        target.extend(found)
    aliases = list(options.aliases)
    del request.aliases[:]
    del request.aliasURNs[:]
    request.aliases.extend(aliases)
    request.provider = options.provider
    request.version = options.version
    request.pluginDownloadURL = options.plugin_download_url
    request.importId = getattr(options, "import")
    request.deletedWith = options.deleted_with
    request.providers.clear()
    request.providers.update(dict(options.providers))
    request.deleteBeforeReplaceDefined = options.HasField("delete_before_replace")
    request.deleteBeforeReplace = options.delete_before_replace
    for name, given in (("protect", "protect"), ("retainOnDelete", "retain_on_delete")):
        if options.HasField(given):
            setattr(request, name, getattr(options, given))
        else:
            request.ClearField(name)
    for name, given in (
        ("customTimeouts", "custom_timeouts"),
        ("replacement_trigger", "replacement_trigger"),
        ("hooks", "hooks"),
    ):
        request.ClearField(name)
        if options.HasField(given):
            getattr(request, name).CopyFrom(getattr(options, given))
    for key in list(request.propertyDependencies):
        if key not in request.object.fields:
            del request.propertyDependencies[key]
