"""The monitor: stands in the engine's place, answers the program, keeps it all.

The Pulumi SDK sends each registration to a *resource monitor*, in a deployment
the engine. :class:`RecordingMonitor` answers instead. It does what the engine
does before a provider is asked (github.com/pulumi/pulumi,
``pkg/resource/deploy/source_eval.go``): it runs transforms (the resource's own,
then its ancestors' upwards, then the stack's), makes the URN from the whole chain
of parent types, refuses a URN that is taken, inherits ``protect``,
``retainOnDelete`` and ``deletedWith`` from the parent, and collects aliases. Then
it derives id and outputs instead of calling a provider.

Provider-level conveniences such as default tags are not applied: the provider's
own inputs are in the record for those who need them.

Transforms are asynchronous, and the SDK calls the monitor as if it were not. A
call with transforms therefore returns :class:`Pending`, which the rehearsal's
executor (:mod:`runfleet.rehearsal.runner`) awaits on the event loop.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from google.protobuf import empty_pb2
from pulumi.runtime import MockCallArgs, MockResourceArgs, Mocks
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import resource_pb2

from runfleet.rehearsal.aliases import Parent, aliases_of
from runfleet.rehearsal.callbacks import LocalCallbacks
from runfleet.rehearsal.emulators.base import Creation, Emulator, Refused
from runfleet.rehearsal.errors import RehearsalError
from runfleet.rehearsal.outputs import Outputs
from runfleet.rehearsal.providers.subject import Subject
from runfleet.rehearsal.record import STACK_TYPE, ResourceRecord
from runfleet.rehearsal.transforms import apply_options, options_of
from runfleet.rehearsal.values import (
    SECRET_TEXT,
    has_secrets,
    hide,
    is_secret,
    mask,
    restore,
    reveal,
    secret,
    secret_texts,
)
from runfleet.rehearsal.wire import fill, to_data, to_struct, value_to_data

STACK_REFERENCE = "pulumi:pulumi:StackReference"
"""Type of a resource that reads another stack's outputs."""

_SECRET_KIND = "kubernetes:core/v1:Secret"

Registered = Callable[[ResourceRecord], None]
"""Called once for each resource, when it is registered."""


@dataclass(frozen=True)
class Pending:
    """A monitor call whose answer takes turns of the event loop."""

    answer: Coroutine[Any, Any, Any]


@dataclass
class _State:
    """A registered resource: what the record keeps, and what only the run needs.

    ``plain_inputs`` are those of a provider; other resources' are not needed again.
    """

    record: ResourceRecord
    plain_inputs: dict[str, Any] = field(default_factory=dict[str, Any])
    transforms: tuple[str, ...] = ()
    protect: bool | None = None
    retain_on_delete: bool | None = None
    wire_outputs: dict[str, Any] = field(default_factory=dict[str, Any])


class NoMocks(Mocks):
    """Satisfies the parent class; the monitor answers everything itself."""

    def call(self, args: MockCallArgs) -> Any:
        """Refuse: never reached."""
        raise NotImplementedError(args.token)

    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        """Refuse: never reached."""
        raise NotImplementedError(args.typ)


class RecordingMonitor(MockMonitor):
    """Answers a stack program as the engine would, and records it.

    Attributes:
        failure: The first refusal; later errors are only its consequences.
        stack_outputs: The exported outputs, secrets marked and in clear.
        references: Names of the stacks that were read.
        invokes: Provider functions that were called, secrets masked.
    """

    def __init__(
        self,
        project: str,
        stack: str,
        references: Callable[[str], Mapping[str, Any]],
        emulators: Mapping[str, Emulator] | None = None,
        outputs: Outputs | None = None,
        on_resource: Registered | None = None,
    ) -> None:
        """Make a monitor for one run.

        Args:
            project: Name of the project.
            stack: Name of the stack.
            references: Returns the outputs of a stack by name, or raises.
            emulators: In-memory clouds by package.
            outputs: Derivations; the built-in tables when None.
            on_resource: Called after each registration.
        """
        super().__init__(NoMocks())
        self._project = project
        self._stack = stack
        self._read_stack = references
        self._emulators = emulators or {}
        self._outputs = outputs or Outputs()
        self._on_resource = on_resource
        self._states: dict[str, _State] = {}
        self._stack_transform_tokens: list[str] = []
        self._invoke_transform_tokens: list[str] = []
        self._known_secrets: set[str] = set()
        self.callbacks: LocalCallbacks | None = None
        self.failure: RehearsalError | None = None
        self.stack_outputs: dict[str, Any] = {}
        self.references: set[str] = set()
        self.invokes: list[dict[str, Any]] = []

    def records(self) -> dict[str, ResourceRecord]:
        """Return everything recorded, by URN, in the order of registration."""
        return {urn: state.record for urn, state in self._states.items()}

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """Make a URN as the engine does.

        The type part is the chain of all parent types, without the stack's.
        """
        if parent:
            chain = parent.split("::")[2]
            if chain != STACK_TYPE:
                type_ = f"{chain}${type_}"
        return f"urn:pulumi:{self._stack}::{self._project}::{type_}::{name}"

    # --- calls of the SDK -------------------------------------------------

    def RegisterResource(self, request: resource_pb2.RegisterResourceRequest) -> Any:
        """Record a resource and answer with derived id and outputs."""
        callbacks = cast("Sequence[Any]", request.transforms)  # pyright: ignore[reportUnknownMemberType]
        tokens: list[str] = [found.token for found in callbacks]
        to_run = [*tokens, *self._inherited_transforms(request.parent)]
        if to_run and request.type != STACK_TYPE:
            return Pending(self._transformed(request, tokens, to_run))
        return self._register(request, tokens)

    def ReadResource(self, request: resource_pb2.ReadResourceRequest) -> Any:
        """Record a resource that the program only reads."""
        if request.type == STACK_REFERENCE:
            return self._read_reference(request)
        inputs = to_data(request.properties)
        urn = self._claim(request.parent, request.type, request.name)
        derived = self._outputs.derive(
            Subject(
                urn=urn,
                type=request.type,
                name=request.name,
                inputs=cast("dict[str, Any]", hide(inputs)),
                provider=self._provider_inputs(request.provider),
                read_id=request.id,
            )
        )
        outputs = {**inputs, **derived.outputs}
        self._mark(outputs, request.additionalSecretOutputs)
        record = ResourceRecord(
            urn=urn,
            type=request.type,
            name=request.name,
            parent=request.parent,
            external=True,
            provider=request.provider,
            id=request.id,
            inputs=self._masked(inputs),
            outputs=self._masked(outputs),
            dependencies=tuple(sorted(request.dependencies)),
            additional_secret_outputs=tuple(request.additionalSecretOutputs),
            version=request.version,
            package_ref=request.packageRef,
        )
        self._keep(_State(record, wire_outputs=outputs))
        return resource_pb2.ReadResourceResponse(
            urn=urn, properties=to_struct(outputs), id=request.id
        )

    def RegisterResourceOutputs(
        self, request: resource_pb2.RegisterResourceOutputsRequest
    ) -> empty_pb2.Empty:
        """Record the outputs of a component, or of the stack."""
        outputs = to_data(request.outputs)
        state = self._states[request.urn]
        if state.record.type == STACK_TYPE:
            self.stack_outputs = outputs
        state.wire_outputs = {**state.wire_outputs, **outputs}
        state.record = replace(state.record, outputs=self._masked(state.wire_outputs))
        return empty_pb2.Empty()

    def Invoke(self, request: resource_pb2.ResourceInvokeRequest) -> Any:
        """Answer a provider function, or say that only the cloud knows."""
        if request.tok == "pulumi:pulumi:getResource":
            return self._get_resource(to_data(request.args))
        if self._invoke_transform_tokens:
            return Pending(self._transformed_invoke(request))
        return self._invoke(request)

    def Call(self, request: resource_pb2.ResourceCallRequest) -> Any:
        """Refuse a method of a remote component: its provider is not here."""
        raise self._fail(
            request.tok, "methods of remote components cannot be rehearsed"
        )

    def RegisterPackage(self, request: resource_pb2.RegisterPackageRequest) -> Any:
        """Give a parameterised package a reference made from its parameters."""
        given = request.parameterization
        if request.HasField("extension"):
            given = request.extension
        parts = (request.name, request.version, given.name, given.version)
        value = base64.b64encode(given.value).decode()
        digest = hashlib.sha256("\0".join((*parts, value)).encode()).hexdigest()
        name = given.name or request.name
        version = given.version or request.version
        return resource_pb2.RegisterPackageResponse(
            ref=f"{name}@{version}#{digest[:12]}"
        )

    def RegisterStackTransform(self, request: Any) -> empty_pb2.Empty:
        """Run a transform on all resources registered from now on."""
        self._stack_transform_tokens.append(request.token)
        return empty_pb2.Empty()

    def RegisterStackInvokeTransform(self, request: Any) -> empty_pb2.Empty:
        """Run a transform on all functions called from now on."""
        self._invoke_transform_tokens.append(request.token)
        return empty_pb2.Empty()

    # --- registration -----------------------------------------------------

    def _register(
        self,
        request: resource_pb2.RegisterResourceRequest,
        transforms: Sequence[str] = (),
    ) -> resource_pb2.RegisterResourceResponse:
        urn = self._claim(request.parent, request.type, request.name)
        inputs = to_data(request.object)
        self._mark(inputs, request.additionalSecretOutputs)
        if request.type == _SECRET_KIND:
            self._mark(inputs, ("data", "stringData"))
        parent = self._states.get(request.parent)
        provider = self._provider_inputs(request.provider)
        id_, outputs = "", inputs
        if request.custom:
            id_, outputs = self._derive(urn, request, inputs, provider)
        record = self._record(urn, id_, request, inputs, outputs, parent)
        state = _State(
            record,
            plain_inputs=_revealed(inputs) if _is_provider(request.type) else {},
            transforms=tuple(transforms),
            protect=_inherited(request, "protect", parent and parent.protect),
            retain_on_delete=_inherited(
                request, "retainOnDelete", parent and parent.retain_on_delete
            ),
            wire_outputs=outputs,
        )
        self._emulate(state, inputs, provider)
        self._keep(state)
        response = resource_pb2.RegisterResourceResponse(urn=urn, id=id_)
        if request.custom or request.remote:
            response.object.CopyFrom(request.object)
            changed = {
                key: value
                for key, value in outputs.items()
                if key not in response.object.fields or value is not inputs.get(key)
            }
            fill(response.object, changed)
            for key in outputs:
                if is_secret(inputs.get(key)):
                    fill(response.object, {key: outputs[key]})
        return response

    def _derive(
        self,
        urn: str,
        request: resource_pb2.RegisterResourceRequest,
        inputs: dict[str, Any],
        provider: Mapping[str, Any],
    ) -> tuple[str, dict[str, Any]]:
        derived = self._outputs.derive(
            Subject(
                urn=urn,
                type=request.type,
                name=request.name,
                inputs=cast("dict[str, Any]", hide(inputs)),
                provider=provider,
            )
        )
        id_ = getattr(request, "importId", "") or derived.id
        outputs = dict(inputs)
        for key, value in derived.outputs.items():
            outputs[key] = restore(value, inputs.get(key))
        self._mark(outputs, request.additionalSecretOutputs)
        return id_, outputs

    def _record(
        self,
        urn: str,
        id_: str,
        request: resource_pb2.RegisterResourceRequest,
        inputs: dict[str, Any],
        outputs: dict[str, Any],
        parent: _State | None,
    ) -> ResourceRecord:
        timeouts = request.customTimeouts
        trigger = None
        if request.HasField("replacement_trigger"):
            trigger = mask(value_to_data(request.replacement_trigger))
        return ResourceRecord(
            urn=urn,
            type=request.type,
            name=request.name,
            parent=request.parent,
            custom=request.custom,
            provider=request.provider,
            id=id_,
            inputs=self._masked(inputs),
            outputs=self._masked(outputs),
            dependencies=tuple(sorted(set(request.dependencies))),
            property_dependencies={
                name: tuple(sorted(set(found.urns)))
                for name, found in sorted(request.propertyDependencies.items())
                if found.urns
            },
            protect=bool(_inherited(request, "protect", parent and parent.protect)),
            retain_on_delete=bool(
                _inherited(
                    request, "retainOnDelete", parent and parent.retain_on_delete
                )
            ),
            delete_before_replace=(
                request.deleteBeforeReplace
                if request.deleteBeforeReplaceDefined
                else None
            ),
            ignore_changes=tuple(request.ignoreChanges),
            replace_on_changes=tuple(request.replaceOnChanges),
            replacement_trigger=trigger,
            aliases=self._aliases(request, parent),
            additional_secret_outputs=tuple(request.additionalSecretOutputs),
            import_id=request.importId,
            custom_timeouts={
                name: value
                for name in ("create", "delete", "read", "update")
                if (value := getattr(timeouts, name))
            },
            deleted_with=request.deletedWith
            or (parent.record.deleted_with if parent else ""),
            version=request.version,
            package_ref=request.packageRef,
        )

    def _claim(self, parent: str, type_: str, name: str) -> str:
        urn = self.make_urn(parent, type_, name)
        if urn in self._states:
            raise self._fail(
                urn, "a resource with this URN is already there; give it another name"
            )
        return urn

    def _keep(self, state: _State) -> None:
        record = state.record
        self._states[record.urn] = state
        if self._on_resource is not None:
            self._on_resource(record)

    def _emulate(
        self, state: _State, inputs: dict[str, Any], provider: Mapping[str, Any]
    ) -> None:
        record = state.record
        if not record.custom:
            return
        emulator = self._emulators.get(record.type.partition(":")[0])
        if emulator is None:
            return
        creation = Creation(
            urn=record.urn,
            type=record.type,
            name=record.name,
            id=record.id,
            inputs=_revealed(inputs),
            outputs=_revealed(state.wire_outputs),
            provider=provider,
        )
        try:
            emulator.create(creation)
        except Refused as error:
            raise self._fail(record.urn, self._without_secrets(str(error))) from error

    def _fail(self, subject: str, reason: str) -> RehearsalError:
        error = RehearsalError(subject, reason)
        if self.failure is None:
            self.failure = error
        return error

    # --- transforms -------------------------------------------------------

    def _inherited_transforms(self, parent: str) -> Iterator[str]:
        while parent:
            state = self._states.get(parent)
            if state is None:
                break
            yield from state.transforms
            parent = state.record.parent
        yield from self._stack_transform_tokens

    async def _transformed(
        self,
        request: resource_pb2.RegisterResourceRequest,
        own: Sequence[str],
        tokens: Sequence[str],
    ) -> Any:
        callbacks = cast("LocalCallbacks", self.callbacks)
        options = options_of(request)
        properties = request.object
        for token in tokens:
            ask = resource_pb2.TransformRequest(
                type=request.type,
                name=request.name,
                custom=request.custom,
                parent=request.parent,
                properties=properties,
                options=options,
            )
            try:
                answer = await callbacks.call(
                    token, ask, resource_pb2.TransformResponse()
                )
            except Exception as error:
                raise self._fail(
                    self.make_urn(request.parent, request.type, request.name),
                    f"a transform raised {type(error).__name__}: {error}",
                ) from error
            if answer.HasField("properties"):
                properties = answer.properties
            if answer.HasField("options"):
                options = answer.options
        changed = resource_pb2.RegisterResourceRequest()
        changed.CopyFrom(request)
        changed.object.CopyFrom(properties)
        apply_options(changed, options)
        return self._register(changed, own)

    async def _transformed_invoke(
        self, request: resource_pb2.ResourceInvokeRequest
    ) -> Any:
        callbacks = cast("LocalCallbacks", self.callbacks)
        changed = resource_pb2.ResourceInvokeRequest()
        changed.CopyFrom(request)
        for token in self._invoke_transform_tokens:
            ask = resource_pb2.TransformInvokeRequest(
                token=request.tok,
                args=changed.args,
                options=resource_pb2.TransformInvokeOptions(
                    provider=changed.provider,
                    version=changed.version,
                    plugin_download_url=changed.pluginDownloadURL,
                ),
            )
            answer = await callbacks.call(
                token, ask, resource_pb2.TransformInvokeResponse()
            )
            changed.args.CopyFrom(answer.args)
            if answer.HasField("options"):
                changed.provider = answer.options.provider
                changed.version = answer.options.version
        return self._invoke(changed)

    # --- reads and functions ----------------------------------------------

    def _read_reference(self, request: resource_pb2.ReadResourceRequest) -> Any:
        urn = self._claim(request.parent, request.type, request.name)
        stack = request.id.rpartition("/")[2]
        try:
            found = self._read_stack(stack)
        except RehearsalError as error:
            if self.failure is None:
                self.failure = error
            raise
        self.references.add(stack)
        outputs: dict[str, Any] = {
            "name": request.id,
            "outputs": dict(found),
            "secretOutputNames": sorted(
                name for name, value in found.items() if has_secrets(value)
            ),
        }
        record = ResourceRecord(
            urn=urn,
            type=request.type,
            name=request.name,
            parent=request.parent,
            external=True,
            id=request.id,
            inputs=self._masked(to_data(request.properties)),
            outputs=self._masked(outputs),
        )
        self._keep(_State(record, wire_outputs=outputs))
        return resource_pb2.ReadResourceResponse(
            urn=urn, properties=to_struct(outputs), id=request.id
        )

    def _get_resource(self, args: Mapping[str, Any]) -> Any:
        urn = str(args["urn"])
        state = self._states.get(urn)
        if state is None:
            raise self._fail(urn, "the program refers to a resource it did not make")
        answer = {"urn": urn, "id": state.record.id, "state": state.wire_outputs}
        return _answer(answer)

    def _invoke(self, request: resource_pb2.ResourceInvokeRequest) -> Any:
        args = to_data(request.args)
        provider = self._provider_inputs(request.provider)
        plain = cast("dict[str, Any]", hide(args))
        result = self._outputs.invoke(request.tok, plain, provider)
        if result is None:
            raise self._fail(
                request.tok,
                "only the real provider can answer this function; give its result to "
                "the program as a setting",
            )
        self.invokes.append(
            {"tok": request.tok, "args": self._masked(args), "result": result}
        )
        return _answer(cast("dict[str, Any]", result))

    def _provider_inputs(self, reference: str) -> Mapping[str, Any]:
        state = self._states.get(reference.rpartition("::")[0])
        return state.plain_inputs if state is not None else {}

    def _aliases(self, request: Any, parent: _State | None) -> tuple[str, ...]:
        above = None
        if parent is not None and parent.record.type != STACK_TYPE:
            above = Parent(parent.record.name, parent.record.aliases)
        return tuple(aliases_of(request, above, self.make_urn))

    # --- secrets ----------------------------------------------------------

    def _mark(self, values: dict[str, Any], names: Sequence[str]) -> None:
        for name in names:
            if name in values and not is_secret(values[name]):
                values[name] = secret(values[name])

    def _masked(self, values: dict[str, Any]) -> dict[str, Any]:
        if not has_secrets(values):
            return values
        self._known_secrets.update(secret_texts(values))
        return cast("dict[str, Any]", mask(values))

    def _without_secrets(self, text: str) -> str:
        for found in sorted(self._known_secrets, key=len, reverse=True):
            if found:
                text = text.replace(found, SECRET_TEXT)
        return text


def _answer(values: Mapping[str, Any]) -> resource_pb2.ResourceInvokeResponse:
    response = resource_pb2.ResourceInvokeResponse()
    getattr(response, "return").CopyFrom(to_struct(values))
    return response


def _is_provider(type_: str) -> bool:
    return type_.startswith("pulumi:providers:")


def _revealed(values: dict[str, Any]) -> dict[str, Any]:
    return reveal(values) if has_secrets(values) else values


def _inherited(
    request: resource_pb2.RegisterResourceRequest, name: Any, parent: bool | None
) -> bool | None:
    return getattr(request, name) if request.HasField(name) else parent
