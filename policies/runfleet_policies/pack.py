"""Give the rules to Pulumi's engine as a policy pack.

``policies/<pack>/__main__.py`` calls :func:`run`. Rules about one resource become
resource policies, rules about a whole stack become stack policies; checks,
parameters and messages are those of the rule objects that the other callers use.

Pulumi runs packs before a deployment, when some values are not known. What a rule
finds for certain is reported as a violation; a value that it cannot know is given
to the engine as such, which shows "can't run policy ... during preview" and goes
on, so that a first deployment is possible and nothing passes silently.

This module imports ``pulumi_policy`` (``pip install runfleet[policy]``), which no
other module of the package does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, cast

import pulumi
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyPack,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy import Severity as PolicySeverity
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, UnknownValueError

from runfleet_policies.engine import breaches_of_resource, breaches_of_stack
from runfleet_policies.registry import rules_of
from runfleet_policies.rule import Breach, Context, Pack, Rule
from runfleet_policies.view import ResourceView, StackView

DOCUMENTATION = "https://github.com/pytorch-fdn/runfleet/blob/main/docs/policies"
"""Where each rule's page is."""


def run(pack: Pack) -> None:
    """Serve a pack to Pulumi's engine; returns when the engine is done."""
    PolicyPack(
        name=f"runfleet-{pack}",
        policies=cast("list[Policy]", policies(pack)),
        enforcement_level=EnforcementLevel.MANDATORY,
        description=f"Runfleet's {pack} rules for CI runner fleets.",
        display_name=f"Runfleet {pack}",
    )


def policies(
    pack: Pack,
) -> list[ResourceValidationPolicy | StackValidationPolicy]:
    """Return the policies of a pack, one per rule."""
    return [policy(rule) for rule in rules_of(pack)]


def policy(rule: Rule) -> ResourceValidationPolicy | StackValidationPolicy:
    """Return the policy of a rule.

    Critical and high rules are mandatory, the others advisory; a pack's
    configuration can change that for each rule.
    """
    mandatory = rule.severity.rank < 2
    level = EnforcementLevel.MANDATORY if mandatory else EnforcementLevel.ADVISORY
    common: dict[str, Any] = {
        "name": rule.id.lower(),
        "description": f"{rule.id}: {rule.title}. {rule.rationale}",
        "display_name": rule.title,
        "enforcement_level": level,
        "severity": PolicySeverity(str(rule.severity)),
        "remediation_steps": rule.fix,
        "tags": [str(rule.pack), *rule.anchors],
        "url": f"{DOCUMENTATION}/{rule.id}.md",
    }
    if rule.parameters:
        properties = {found.name: found.schema for found in rule.parameters}
        common["config_schema"] = PolicyConfigSchema(properties=properties)
    if rule.stack is not None:
        return StackValidationPolicy(validate=_stack_check(rule), **common)
    if rule.remediate is not None:
        common["remediate"] = _remediation(rule)
    return ResourceValidationPolicy(validate=_resource_check(rule), **common)


def plain(value: Any) -> Any:
    """Return a property value without the wrappers that refuse unknown values."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: plain(item) for key, item in members.items()}
    if isinstance(value, list):
        return [plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, Mapping) or type(value).__name__ == "_ListProxy":
        return plain(cast("Any", value)["__target"])
    return value


@dataclass(frozen=True)
class _Resource:
    """A resource of a policy pack in the form that the engine reads."""

    urn: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    parent: str = ""
    provider: str = ""
    property_dependencies: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]]
    )

    @property
    def id(self) -> str:
        """Physical id, where the engine gives one."""
        found = self.inputs.get("id")
        return found if isinstance(found, str) else ""

    @property
    def outputs(self) -> Mapping[str, Any]:
        """The same properties: the engine gives a stack policy one set."""
        return self.inputs


def _resource_check(
    rule: Rule,
) -> Callable[[ResourceValidationArgs, ReportViolation], None]:
    def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
        view = _view(args)
        if not _about(rule, view.type):
            return
        breaches = breaches_of_resource(rule, view, _context(rule, args.get_config()))
        _report(rule, breaches, report, "")

    return check


def _stack_check(
    rule: Rule,
) -> Callable[[StackValidationArgs, ReportViolation], None]:
    def check(args: StackValidationArgs, report: ReportViolation) -> None:
        stack = StackView(_resources(args.resources), pulumi.get_stack())
        breaches = breaches_of_stack(rule, stack, _context(rule, args.get_config()))
        _report(rule, breaches, report, "the stack")

    return check


def _remediation(
    rule: Rule,
) -> Callable[[ResourceValidationArgs], Mapping[str, Any] | None]:
    remediate = rule.remediate
    assert remediate is not None

    def mend(args: ResourceValidationArgs) -> Mapping[str, Any] | None:
        view = _view(args)
        if not _about(rule, view.type):
            return None
        return remediate(view, _context(rule, args.get_config()))

    return mend


def _view(args: ResourceValidationArgs) -> ResourceView:
    provider = args.provider
    return ResourceView(
        urn=args.urn,
        type=args.resource_type,
        name=args.name,
        inputs=plain(args.props),
        provider=plain(provider.props) if provider is not None else {},
    )


def _resources(found: Iterable[PolicyResource]) -> list[_Resource]:
    listed: list[_Resource] = []
    providers: set[str] = set()
    for resource in found:
        reference = ""
        provider = resource.provider
        if provider is not None:
            reference = f"{provider.urn}::id"
            if provider.urn not in providers:
                providers.add(provider.urn)
                props = plain(provider.props)
                kind = provider.resource_type
                listed.append(_Resource(provider.urn, kind, provider.name, props))
        listed.append(
            _Resource(
                urn=resource.urn,
                type=resource.resource_type,
                name=resource.name,
                inputs=plain(resource.props),
                parent=resource.parent.urn if resource.parent is not None else "",
                provider=reference,
                property_dependencies={
                    name: tuple(other.urn for other in others)
                    for name, others in resource.property_dependencies.items()
                },
            )
        )
    return listed


def _about(rule: Rule, kind: str) -> bool:
    return any(fnmatchcase(kind, pattern) for pattern in rule.types)


def _context(rule: Rule, config: Mapping[str, Any]) -> Context:
    return Context(stack=pulumi.get_stack(), values=rule.settings(config))


def _report(
    rule: Rule, breaches: Iterable[Breach], report: ReportViolation, stack: str
) -> None:
    unknown = ""
    for breach in breaches:
        if breach.cannot_tell:
            unknown = unknown or breach.where_suffix or breach.why
            continue
        place = f" [{breach.where_suffix}]" if breach.where_suffix else ""
        where = f"{stack}: " if stack and not breach.urn else ""
        message = f"{rule.id}: {where}{breach.why}{place}. Fix: {rule.fix}"
        report(message, breach.urn or None)
    if unknown:
        raise UnknownValueError(UNKNOWN_STRING_VALUE, [unknown])
