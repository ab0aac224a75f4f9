"""Identities: one per class with grants, exact subjects, exact assignments."""

from __future__ import annotations

import pytest

from clouds.azure import fleets
from clouds.azure.fleets import GROUP, TENANT, Recording
from runfleet.clouds.azure import identity, roles
from runfleet.clouds.azure.grants import ROLES, assignments
from runfleet.clouds.azure.secrets_reader import secret_name
from runfleet.spec.roles import Grant, Role, Scope, StoreKind, Trust, Verb, matrix

BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"


def held(record: Recording, name: str) -> dict[tuple[str, str], str]:
    """Return the condition of each assignment of a class, by scope's tail and role."""
    principal = record[f"{name}-identity"].outputs["principalId"]
    names = {
        r.id.rpartition("/")[2]: r.name.partition("-role-")[2]
        for r in record.of("authorization:RoleDefinition")
    }
    return {
        (
            r.inputs["scope"].rpartition("/")[2],
            names.get(r.inputs["roleDefinitionId"].rpartition("/")[2], "central"),
        ): r.inputs.get("condition", "")
        for r in record.of("authorization:RoleAssignment")
        if r.inputs["principalId"] == principal
    }


def test_classes_without_grants_have_no_identity(cell: Recording) -> None:
    made = {r.name for r in cell.record.resources if r.type.endswith(":RunnerIdentity")}
    assert made == {
        f"azure-identity-{name}"
        for name in ("tests", "builds", "nightlies", "releases")
    }


def test_an_identity_takes_one_service_account(cell: Recording) -> None:
    plan = fleets.cell_plan()
    (planned,) = [p for p in plan.classes if p.name == "tests"]
    found = cell.inputs("azure-identity-tests-credential-pods")
    assert found == {
        "audiences": ["api://AzureADTokenExchange"],
        "federatedIdentityCredentialResourceName": "subject--pods",
        "issuer": cell["azure-cluster-aks"].outputs["oidcIssuerProfile"]["issuerURL"],
        "resourceGroupName": "demo-eus",
        "resourceName": "demo-eus--job--tests",
        "subject": f"system:serviceaccount:{planned.job_namespace}:job",
    }


def test_every_credential_is_exact_and_alone(cell: Recording) -> None:
    found = cell.of("managedidentity:FederatedIdentityCredential")
    assert len({r.inputs["resourceName"] for r in found}) == len(found) == 5
    assert len({r.inputs["subject"] for r in found}) == 5
    assert not any("*" in r.inputs["subject"] for r in found)


def test_what_a_tester_may_do(with_aws: Recording) -> None:
    read = (
        f"((!(ActionMatches{{'{BLOBS}/read'}} AND !SubOperationMatches{{'Blob.List'}}))"
        f" OR (@Resource[{BLOBS}:path] StringStartsWith 'untrusted-pr/' OR "
        f"@Resource[{BLOBS}:path] StringStartsWith 'trusted/' OR "
        f"@Resource[{BLOBS}:path] StringStartsWith 'release/')) AND "
        f"((!(ActionMatches{{'{BLOBS}/read'}} AND SubOperationMatches{{'Blob.List'}}))"
        f" OR (@Request[{BLOBS}:prefix] StringStartsWith 'untrusted-pr/' OR "
        f"@Request[{BLOBS}:prefix] StringStartsWith 'trusted/' OR "
        f"@Request[{BLOBS}:prefix] StringStartsWith 'release/'))"
    )
    write = (
        f"((!(ActionMatches{{'{BLOBS}/write'}}) AND "
        f"!(ActionMatches{{'{BLOBS}/add/action'}})) OR "
        f"(@Resource[{BLOBS}:path] StringStartsWith 'untrusted-pr/'))"
    )
    registries = {
        trust: with_aws[f"azure-stores-registry-images-{trust}"].id.rpartition("/")[2]
        for trust in Trust
    }
    assert held(with_aws, "azure-identity-tests") == {
        ("cache", "object-reader"): read,
        ("cache", "object-writer"): write,
        ("artifacts", "object-reader"): read,
        ("artifacts", "object-writer"): write,
        (registries[Trust.UNTRUSTED_PR], "image-reader"): "",
        (registries[Trust.TRUSTED], "image-reader"): "",
        (registries[Trust.RELEASE], "image-reader"): "",
        (registries[Trust.UNTRUSTED_PR], "image-writer"): "",
    }


def test_assignments_are_narrow(cell: Recording, central: Recording) -> None:
    for record in (cell, central):
        for resource in record.of("authorization:RoleAssignment"):
            found = resource.inputs
            assert found["principalType"] == "ServicePrincipal"
            assert found["scope"].count("/") >= 8, "a scope above one resource"
            has = "condition" in found
            assert found.get("conditionVersion") == ("2.0" if has else None)
            assert resource.delete_before_replace


def test_a_release_class_reads_nothing_that_others_wrote(with_aws: Recording) -> None:
    found = held(with_aws, "azure-identity-releases")
    reading = found["cache", "object-reader"]
    assert "'release/'" in reading
    assert "trusted" not in reading


def test_what_pods_are_told(cell: Recording) -> None:
    found = cell.record.outputs["identity:tests"]
    client = cell["azure-identity-tests-identity"].outputs["clientId"]
    assert found["annotations"] == {
        "azure.workload.identity/client-id": client,
        "azure.workload.identity/tenant-id": TENANT,
        "azure.workload.identity/service-account-token-expiration": "3600",
    }
    assert found["pod_labels"] == {"azure.workload.identity/use": "true"}
    assert found["endpoints"] == []


def test_classes_with_central_grants_on_aws_need_a_token_for_it(
    with_aws: Recording, cell: Recording
) -> None:
    for name in ("tests", "builds"):
        urn = with_aws[f"azure-identity-{name}"]
        assert urn.outputs["token_audiences"] == ["sts.amazonaws.com"]
        assert cell[f"azure-identity-{name}"].outputs["token_audiences"] == []


def test_the_cluster_says_its_issuer(with_aws: Recording) -> None:
    outputs = with_aws["azure-cluster"].outputs
    assert outputs["oidc_issuer"].startswith("https://eastus.oic.prod-aks.azure.com/")


def test_credentials_are_written_one_after_the_other(central: Recording) -> None:
    names = [
        f"central-federated-donated-credential-{key}"
        for key in ("names-demo-org-demo", "ids-demo-org-11-demo-22")
    ]
    assert names[0] in central.after(names[1])
    third = "central-federated-donated-credential-names-demo-org-vision"
    assert names[1] in central.after(third)


@pytest.mark.parametrize(
    ("subjects", "message"),
    [
        pytest.param({}, "exact subjects", id="none"),
        pytest.param({"a": "repo:x/*:environment:y"}, "exact subjects", id="pattern"),
        pytest.param({str(n): f"s{n}" for n in range(21)}, "allows 20", id="many"),
    ],
)
def test_subjects_that_are_refused(subjects: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        identity.credentials(
            "x",
            None,  # type: ignore[arg-type]
            "group",
            "issuer",
            subjects,
            None,  # type: ignore[arg-type]
        )


@pytest.mark.parametrize("trust", list(Trust))
@pytest.mark.parametrize("role", list(Role))
def test_grants_make_assignments_and_nothing_else(role: Role, trust: Trust) -> None:
    found = assignments(matrix(role), trust)
    assert {(a.kind, a.scope) for a in found} == {
        (g.store, g.scope) for g in matrix(role)
    }
    assert len({a.key for a in found}) == len(found)
    for assignment in found:
        assert assignment.role in ROLES
        data = bool(ROLES[assignment.role].data_actions)
        assert bool(assignment.condition) == data


def test_no_grants_make_no_assignments() -> None:
    assert assignments(frozenset(), Trust.RELEASE) == []


def test_insert_neither_reads_nor_replaces() -> None:
    grant = Grant(Role.TESTER, Verb.INSERT, StoreKind.TELEMETRY, Scope.CENTRAL)
    (found,) = assignments([grant], Trust.TRUSTED)
    assert ROLES[found.role].data_actions == (f"{BLOBS}/add/action",)
    assert ROLES[found.role].actions == ()


def test_roles_hold_no_pattern() -> None:
    for role in ROLES.values():
        assert not any("*" in action for action in role.actions + role.data_actions)


def test_external_secrets_reads_the_apps_secrets_only(cell: Recording) -> None:
    principal = cell["azure-secrets-identity"].outputs["principalId"]
    vault = cell["azure-cluster-vault"].id
    found = {
        (r.inputs["scope"], r.inputs["roleDefinitionId"].rpartition("/")[2])
        for r in cell.of("authorization:RoleAssignment")
        if r.inputs["principalId"] == principal
    }
    assert found == {
        (f"{vault}/secrets/demo-x-github-app", roles.SECRETS_USER),
        (f"{vault}/secrets/demo-x-github-app-release", roles.SECRETS_USER),
    }
    credential = cell.inputs("azure-secrets-credential-pods")
    assert credential["subject"] == "system:serviceaccount:external-secrets:eso"


def test_secret_names_do_not_meet() -> None:
    made = {secret_name(name) for name in ("a/b", "a-b", "a-x-b", "a//b", "a/b/c")}
    assert len(made) == 5


def test_role_definitions_are_assignable_here_only(cell: Recording) -> None:
    for resource in cell.of("authorization:RoleDefinition"):
        assert resource.inputs["assignableScopes"] == [GROUP]
        assert resource.inputs["scope"] == GROUP
        assert resource.inputs["roleType"] == "CustomRole"
