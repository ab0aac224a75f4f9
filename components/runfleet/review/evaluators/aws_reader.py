"""Reads roles, policies, keys, trust and associations from the resources of a record.

The inventory is read from the resources of one or several records, by their Pulumi
type tokens and camelCase inputs and outputs (pulumi-aws 7). A document that cannot be
read, is secret or is not known yet stays in the inventory as an *opaque* policy, so
that questions which depend on it are answered with "cannot tell"; malformed documents
are also listed in ``problems``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, cast

from runfleet.review.evaluators.aws_inventory import (
    Cluster,
    Inventory,
    OidcProvider,
    PodIdentityAssociation,
    Role,
)
from runfleet.review.evaluators.aws_match import is_unresolved
from runfleet.review.evaluators.aws_policy import (
    Policy,
    PolicyError,
    PolicyKind,
    PolicyProblem,
    opaque_policy,
    parse_policy,
)
from runfleet.review.evaluators.aws_principals import role_parts

PULUMI_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
"""Key that marks a special value, such as a secret, in Pulumi's wire format."""


class Resource(Protocol):
    """One resource of a record."""

    @property
    def urn(self) -> str:
        """The resource's URN."""
        ...

    @property
    def type(self) -> str:
        """The resource's type token."""
        ...

    @property
    def id(self) -> Any:
        """The resource's id, where it has one."""
        ...

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Inputs by their Pulumi names."""
        ...

    @property
    def outputs(self) -> Mapping[str, Any]:
        """Outputs by their Pulumi names."""
        ...


def read_inventory(
    resources: Iterable[Resource],
    *,
    account: str | None = None,
    managed_policies: Mapping[str, str | Mapping[str, Any]] | None = None,
) -> Inventory:
    """Read the inventory of one record, which deploys to one account.

    Args:
        resources: The record's resources, of any provider.
        account: The 12-digit account id; when ``None`` it is the only account that
            the ARNs of the record's roles name, or unknown.
        managed_policies: Documents of policies that the record does not hold, by
            ARN: those that AWS manages, or existing ones. Others are opaque.
    """
    return _Collector(account, managed_policies or {}).collect(list(resources))


def is_opaque(value: object) -> bool:
    """Whether a value of a record is a secret or is not known yet."""
    if isinstance(value, Mapping):
        return PULUMI_SIGNATURE in cast("Mapping[str, object]", value)
    # A document in which only parts are hidden can still be read in part.
    return isinstance(value, str) and is_unresolved(value) and "{" not in value


_DEFAULT_KEY_POLICY: Final = {
    "Version": "2012-10-17",
    "Id": "key-default-1",
    "Statement": [
        {
            "Sid": "Enable IAM User Permissions",
            "Effect": "Allow",
            "Action": "kms:*",
            "Resource": "*",
        }
    ],
}
"""AWS KMS Developer Guide, "Default key policy": the account may use IAM policies."""


class _Collector:
    """Reads one record; methods are tried in the order of ``collect``."""

    def __init__(
        self,
        account: str | None,
        managed: Mapping[str, str | Mapping[str, Any]],
    ) -> None:
        self.account = account
        self.managed = managed
        self.inventory = Inventory()
        self.by_type: dict[str, list[Resource]] = {}
        self.roles_by_name: dict[str, list[Role]] = {}
        self.policies: dict[str, Policy] = {}

    def collect(self, resources: list[Resource]) -> Inventory:
        for resource in resources:
            self.by_type.setdefault(resource.type, []).append(resource)
        self._find_account()
        self._managed_policies()
        self._roles()
        self._attachments()
        self._buckets()
        self._keys()
        self._repositories()
        self._queues()
        self._plain("aws:secretsmanager/secret:Secret", "secretArn", "policy")
        self._plain("aws:dynamodb/table:Table", "resourceArn", "")
        self._separate("aws:secretsmanager/secretPolicy:SecretPolicy", "secretArn")
        self._separate("aws:dynamodb/resourcePolicy:ResourcePolicy", "resourceArn")
        self._endpoints()
        self._identity_providers()
        self._associations()
        return self.inventory

    def of(self, token: str) -> list[Resource]:
        return self.by_type.get(token, [])

    def document(
        self, value: object, kind: PolicyKind, name: str, owner: str
    ) -> Policy:
        if value is None or is_opaque(value):
            return opaque_policy(name, owner, kind)
        if not isinstance(value, str | Mapping):
            self._problem(owner, name, "is not a policy document")
            return opaque_policy(name, owner, kind)
        body = cast("str | Mapping[str, Any]", value)
        try:
            return parse_policy(body, kind, name=name, owner=owner)
        except PolicyError as error:
            self.inventory.problems.extend(error.problems)
            return opaque_policy(name, owner, kind)

    def _problem(self, owner: str, place: str, message: str) -> None:
        self.inventory.problems.append(PolicyProblem(owner, place, message))

    def _find_account(self) -> None:
        if self.account is None:
            found = {
                parts[0]
                for role in self.of("aws:iam/role:Role")
                if (parts := role_parts(_text(role, "arn"))) is not None
            }
            self.account = found.pop() if len(found) == 1 else None
        if self.account is not None:
            self.inventory.accounts.add(self.account)

    def _managed_policies(self) -> None:
        for resource in self.of("aws:iam/policy:Policy"):
            arn = _text(resource, "arn") or str(resource.id)
            self.policies[arn] = self.document(
                _value(resource, "policy"),
                PolicyKind.IDENTITY,
                f"policy {_text(resource, 'name') or arn}",
                resource.urn,
            )

    def managed_policy(self, arn: object, kind: PolicyKind) -> Policy:
        if not isinstance(arn, str) or is_opaque(arn):
            return opaque_policy("managed policy", "", kind)
        found = self.policies.get(arn)
        if found is None:
            name = f"policy {arn}"
            found = self.document(self.managed.get(arn), kind, name, arn)
            self.policies[arn] = found
        return found

    def _roles(self) -> None:
        for resource in self.of("aws:iam/role:Role"):
            arn = _text(resource, "arn")
            parts = role_parts(arn)
            if parts is None:
                self._problem(resource.urn, "arn", f"{arn!r} is not a role's ARN")
                continue
            self.inventory.accounts.add(parts[0])
            boundary = _value(resource, "permissionsBoundary")
            role = Role(
                arn,
                parts[1],
                parts[0],
                resource.urn,
                self.document(
                    _value(resource, "assumeRolePolicy"),
                    PolicyKind.TRUST,
                    "trust policy",
                    resource.urn,
                ),
                boundary=(
                    self.managed_policy(boundary, PolicyKind.BOUNDARY)
                    if boundary
                    else None
                ),
                max_session_s=_whole(_value(resource, "maxSessionDuration"), 3600),
                tags=_texts(_value(resource, "tagsAll") or _value(resource, "tags")),
                unique_id=_text(resource, "uniqueId") or None,
            )
            self._carried(role, resource)
            self.inventory.roles[arn] = role
            self.roles_by_name.setdefault(role.name, []).append(role)

    def _carried(self, role: Role, resource: Resource) -> None:
        """Add the policies that stand inside the role's own inputs."""
        kind = PolicyKind.IDENTITY
        inline_policies = resource.inputs.get("inlinePolicies")
        if is_opaque(inline_policies):
            role.policies.append(opaque_policy("inline policies", role.urn, kind))
        for inline in _list(inline_policies):
            if is_opaque(inline):
                role.policies.append(opaque_policy("inline policy", role.urn, kind))
                continue
            body = cast("Mapping[str, object]", inline or {})
            if body.get("policy"):
                name = f"inline policy {body.get('name', '')}".strip()
                role.policies.append(
                    self.document(body["policy"], kind, name, role.urn)
                )
        managed = resource.inputs.get("managedPolicyArns")
        if is_opaque(managed):
            role.policies.append(opaque_policy("managed policies", role.urn, kind))
        for attached in _list(managed):
            role.policies.append(self.managed_policy(attached, kind))

    def _named_roles(self, resource: Resource, value: object) -> list[Role]:
        name = str(value or "").rpartition("/")[2]
        roles = self.roles_by_name.get(name, [])
        if not roles:
            self._problem(
                resource.urn, "role", f"names role {name!r}, which is not in the record"
            )
        return roles

    def _attachments(self) -> None:
        for resource in self.of("aws:iam/rolePolicy:RolePolicy"):
            policy = self.document(
                _value(resource, "policy"),
                PolicyKind.IDENTITY,
                f"inline policy {_text(resource, 'name')}".strip(),
                resource.urn,
            )
            for role in self._named_roles(resource, _value(resource, "role")):
                role.policies.append(policy)
        for resource in self.of("aws:iam/rolePolicyAttachment:RolePolicyAttachment"):
            policy = self.managed_policy(
                _value(resource, "policyArn"), PolicyKind.IDENTITY
            )
            for role in self._named_roles(resource, _value(resource, "role")):
                role.policies.append(policy)
        for resource in self.of("aws:iam/policyAttachment:PolicyAttachment"):
            policy = self.managed_policy(
                _value(resource, "policyArn"), PolicyKind.IDENTITY
            )
            for name in _list(_value(resource, "roles")):
                for role in self._named_roles(resource, name):
                    role.policies.append(policy)

    def _own(self, arn: str) -> list[Policy]:
        if self.account is not None and arn:
            self.inventory.owners.setdefault(arn, self.account)
        return self.inventory.resource_policies.setdefault(arn, [])

    def _resource_policy(
        self,
        resource: Resource,
        arn: str,
        value: object,
        kind: PolicyKind = PolicyKind.RESOURCE,
    ) -> None:
        name = f"{resource.type.rpartition(':')[2]} policy".replace(
            "Policy policy", " policy"
        )
        self._own(arn).append(self.document(value, kind, name.lower(), resource.urn))

    def _buckets(self) -> None:
        for token in ("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2"):
            for resource in self.of(token):
                arn = _bucket_arn(_name(resource, "bucket"))
                self._own(arn)
                if resource.inputs.get("policy"):
                    self._resource_policy(resource, arn, resource.inputs["policy"])
        for resource in self.of("aws:s3/bucketPolicy:BucketPolicy"):
            arn = _bucket_arn(_text(resource, "bucket"))
            self._resource_policy(resource, arn, _value(resource, "policy"))
        for resource in self.of(
            "aws:s3/bucketServerSideEncryptionConfiguration:"
            "BucketServerSideEncryptionConfiguration"
        ):
            for rule in _list(_value(resource, "rules")):
                default = cast("Mapping[str, Any]", rule or {}).get(
                    "applyServerSideEncryptionByDefault"
                )
                key = cast("Mapping[str, Any]", default or {}).get("kmsMasterKeyId")
                if isinstance(key, str):
                    arn = _bucket_arn(_text(resource, "bucket"))
                    self.inventory.bucket_keys[arn] = key

    def _keys(self) -> None:
        separate = {
            _text(resource, "keyId")
            for resource in self.of("aws:kms/keyPolicy:KeyPolicy")
        }
        by_id: dict[str, str] = {}
        for resource in self.of("aws:kms/key:Key"):
            arn = _text(resource, "arn")
            by_id[_text(resource, "keyId") or str(resource.id)] = arn
            by_id[str(resource.id)] = by_id[arn] = arn
            document = resource.inputs.get("policy")
            if document:
                self._resource_policy(resource, arn, document)
            elif not separate & {arn, str(resource.id), _text(resource, "keyId")}:
                account = _account_of(arn) or self.account
                default = _default_key_policy(account) if account else None
                self._resource_policy(resource, arn, default)
        for resource in self.of("aws:kms/keyPolicy:KeyPolicy"):
            key = _text(resource, "keyId")
            self._resource_policy(
                resource, by_id.get(key, key), _value(resource, "policy")
            )
        keys = self.inventory.bucket_keys
        for bucket, key in keys.items():
            keys[bucket] = by_id.get(key, key)

    def _repositories(self) -> None:
        by_name: dict[str, str] = {}
        for resource in self.of("aws:ecr/repository:Repository"):
            arn = _text(resource, "arn")
            by_name[_name(resource, "name")] = arn
            self._own(arn)
        for resource in self.of("aws:ecr/repositoryPolicy:RepositoryPolicy"):
            name = _text(resource, "repository")
            if name not in by_name:
                self._problem(
                    resource.urn,
                    "repository",
                    f"names repository {name!r}, which is not in the record",
                )
                continue
            self._resource_policy(
                resource,
                by_name[name],
                _value(resource, "policy"),
                PolicyKind.REPOSITORY,
            )
        for resource in self.of(
            "aws:ecr/repositoryCreationTemplate:RepositoryCreationTemplate"
        ):
            document = _value(resource, "repositoryPolicy")
            prefix = _text(resource, "prefix")
            prefix = "" if prefix == "ROOT" else f"{prefix}/"
            policies = self.inventory.templates.setdefault(prefix, [])
            if document:
                policies.append(
                    self.document(
                        document,
                        PolicyKind.REPOSITORY,
                        "repository policy of the creation template",
                        resource.urn,
                    )
                )
        for resource in self.of("aws:ecr/registryPolicy:RegistryPolicy"):
            account = _text(resource, "registryId") or self.account or ""
            self.inventory.registry_policies.setdefault(account, []).append(
                self.document(
                    _value(resource, "policy"),
                    PolicyKind.RESOURCE,
                    "registry policy",
                    resource.urn,
                )
            )

    def _queues(self) -> None:
        by_url: dict[str, str] = {}
        for resource in self.of("aws:sqs/queue:Queue"):
            arn = _text(resource, "arn")
            by_url[str(resource.id)] = by_url[_text(resource, "url")] = arn
            self._own(arn)
            if resource.inputs.get("policy"):
                self._resource_policy(resource, arn, resource.inputs["policy"])
        for resource in self.of("aws:sqs/queuePolicy:QueuePolicy"):
            url = _text(resource, "queueUrl")
            if url in by_url:
                self._resource_policy(resource, by_url[url], _value(resource, "policy"))
            else:
                self._problem(
                    resource.urn,
                    "queueUrl",
                    f"names queue {url!r}, which is not in the record",
                )

    def _plain(self, token: str, key: str, policy: str) -> None:
        for resource in self.of(token):
            arn = _text(resource, "arn") or str(resource.id)
            self._own(arn)
            if policy and resource.inputs.get(policy):
                self._resource_policy(resource, arn, resource.inputs[policy])

    def _separate(self, token: str, key: str) -> None:
        for resource in self.of(token):
            self._resource_policy(
                resource, _text(resource, key), _value(resource, "policy")
            )

    def _endpoints(self) -> None:
        for resource in self.of("aws:ec2/vpcEndpoint:VpcEndpoint"):
            document = resource.inputs.get("policy")
            self.inventory.endpoints[str(resource.id)] = (
                self.document(
                    document, PolicyKind.ENDPOINT, "endpoint policy", resource.urn
                )
                if document
                else None
            )
        for resource in self.of("aws:ec2/vpcEndpointPolicy:VpcEndpointPolicy"):
            self.inventory.endpoints[_text(resource, "vpcEndpointId")] = self.document(
                _value(resource, "policy"),
                PolicyKind.ENDPOINT,
                "endpoint policy",
                resource.urn,
            )

    def _identity_providers(self) -> None:
        for resource in self.of("aws:iam/openIdConnectProvider:OpenIdConnectProvider"):
            issuer = _text(resource, "url").removeprefix("https://")
            arn = _text(resource, "arn")
            audiences = _list(_value(resource, "clientIdLists"))
            self.inventory.providers[arn] = OidcProvider(
                arn, issuer, tuple(str(audience) for audience in audiences)
            )
        for resource in self.of("aws:eks/cluster:Cluster"):
            issuer = None
            for identity in _list(resource.outputs.get("identities")):
                oidcs = cast("Mapping[str, Any]", identity or {}).get("oidcs")
                for oidc in _list(oidcs):
                    url = cast("Mapping[str, Any]", oidc or {}).get("issuer")
                    if isinstance(url, str):
                        issuer = url.removeprefix("https://")
            name = _name(resource, "name")
            self.inventory.clusters[name] = Cluster(
                name, _text(resource, "arn"), issuer
            )

    def _associations(self) -> None:
        token = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
        for resource in self.of(token):
            document = _value(resource, "policy")
            self.inventory.associations.append(
                PodIdentityAssociation(
                    resource.urn,
                    _text(resource, "clusterName"),
                    _text(resource, "namespace"),
                    _text(resource, "serviceAccount"),
                    _text(resource, "roleArn"),
                    _text(resource, "targetRoleArn") or None,
                    _text(resource, "externalId") or None,
                    self.document(
                        document,
                        PolicyKind.SESSION,
                        "pod identity session policy",
                        resource.urn,
                    )
                    if document
                    else None,
                    _value(resource, "disableSessionTags") is not True,
                )
            )


def _value(resource: Resource, key: str) -> Any:
    """Return an input, or else the output of that name."""
    found = resource.inputs.get(key)
    return found if found is not None else resource.outputs.get(key)


def _text(resource: Resource, key: str) -> str:
    found = resource.outputs.get(key)
    if not isinstance(found, str):
        found = resource.inputs.get(key)
    return found if isinstance(found, str) else ""


def _name(resource: Resource, key: str) -> str:
    return _text(resource, key) or str(resource.id)


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    body = cast("Mapping[str, object]", value)
    return {key: item for key, item in body.items() if isinstance(item, str)}


def _whole(value: object, default: int) -> int:
    return int(value) if isinstance(value, int | float) else default


def _bucket_arn(bucket: str) -> str:
    return bucket if bucket.startswith("arn:") else f"arn:aws:s3:::{bucket}"


def _account_of(arn: str) -> str:
    parts = arn.split(":", 5)
    return parts[4] if len(parts) == 6 else ""


def _default_key_policy(account: str) -> dict[str, Any]:
    statement = _DEFAULT_KEY_POLICY["Statement"][0]
    principal = {"AWS": f"arn:aws:iam::{account}:root"}
    return {
        **_DEFAULT_KEY_POLICY,
        "Statement": [{**cast("dict[str, Any]", statement), "Principal": principal}],
    }
