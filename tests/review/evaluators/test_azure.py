"""What Azure's rules say of records: access, the way to it, and traps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from runfleet.review.evaluators.azure import (
    EXCHANGE_AUDIENCE,
    AzureAccess,
    Request,
    covers,
)
from runfleet.review.evaluators.azure_fleet import AzureReader
from runfleet.review.evaluators.decision import Truth
from runfleet.review.evaluators.parts import Answer, Part
from runfleet.spec.github import GitHub
from runfleet.spec.roles import Scope, StoreKind, Trust

GROUP = "/subscriptions/s/resourceGroups/g"
ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/acc"
CONTAINER = f"{ACCOUNT}/blobServices/default/containers/cache"
REGISTRY = f"{GROUP}/providers/Microsoft.ContainerRegistry/registries/reg"
IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/job"
ISSUER = "https://eastus.oic.prod-aks.azure.com/t/1/"
BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
PATH, PREFIX = f"@Resource[{BLOBS}:path]", f"@Request[{BLOBS}:prefix]"
SUBJECT = "system:serviceaccount:j-tests--azure:job"
CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
OWNER = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"

READ = (
    f"((!(ActionMatches{{'{BLOBS}/read'}} AND !SubOperationMatches{{'Blob.List'}})) OR "
    f"({PATH} StringStartsWith 'trusted/')) AND "
    f"((!(ActionMatches{{'{BLOBS}/read'}} AND SubOperationMatches{{'Blob.List'}})) OR "
    f"({PREFIX} StringStartsWith 'trusted/'))"
)
WRITE = (
    f"((!(ActionMatches{{'{BLOBS}/write'}}) AND "
    f"!(ActionMatches{{'{BLOBS}/add/action'}})) OR "
    f"({PATH} StringStartsWith 'trusted/'))"
)


@dataclass(frozen=True)
class Thing:
    """A resource of a record."""

    type: str
    id: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    urn: str = "urn"


def role(guid: str, **permissions: Sequence[str]) -> Thing:
    names = {"data": "dataActions", "without": "notActions"}
    made = {names.get(key, key): list(value) for key, value in permissions.items()}
    return Thing(
        "azure-native:authorization:RoleDefinition",
        f"{GROUP}/providers/Microsoft.Authorization/roleDefinitions/{guid}",
        {"permissions": [made]},
    )


def assignment(
    guid: str,
    scope: str = CONTAINER,
    condition: str = "",
    version: str = "2.0",
    principal: str = "principal",
) -> Thing:
    inputs: dict[str, Any] = {
        "principalId": principal,
        "scope": scope,
        "roleDefinitionId": f"/subscriptions/s/providers/x/roleDefinitions/{guid}",
    }
    if condition:
        inputs |= {"condition": condition, "conditionVersion": version}
    return Thing("azure-native:authorization:RoleAssignment", "id", inputs)


def credential(
    subject: str = SUBJECT,
    issuer: str = ISSUER,
    audiences: Sequence[str] = (EXCHANGE_AUDIENCE,),
) -> Thing:
    inputs = {"issuer": issuer, "subject": subject, "audiences": list(audiences)}
    return Thing(
        "azure-native:managedidentity:FederatedIdentityCredential",
        f"{IDENTITY}/federatedIdentityCredentials/pods",
        inputs,
    )


def account(**changes: Any) -> Thing:
    safe = {
        "allowSharedKeyAccess": False,
        "allowBlobPublicAccess": False,
        "isLocalUserEnabled": False,
        "isSftpEnabled": False,
        "enableHttpsTrafficOnly": True,
        "minimumTlsVersion": "TLS1_2",
    }
    kept = {k: v for k, v in (safe | changes).items() if v is not ...}
    return Thing("azure-native:storage:StorageAccount", ACCOUNT, kept)


BASE = (
    Thing(
        "azure-native:managedidentity:UserAssignedIdentity",
        IDENTITY,
        {},
        {"principalId": "principal"},
    ),
    Thing(
        "azure-native:containerservice:ManagedCluster",
        f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/demo",
        {"oidcIssuerProfile": {"enabled": True}},
        {"oidcIssuerProfile": {"enabled": True, "issuerURL": ISSUER}},
    ),
    role("reader", data=[f"{BLOBS}/read"]),
    role("writer", data=[f"{BLOBS}/write", f"{BLOBS}/add/action"]),
    role("adder", data=[f"{BLOBS}/add/action"]),
    role("puller", actions=["Microsoft.ContainerRegistry/registries/pull/read"]),
    role("pusher", actions=["Microsoft.ContainerRegistry/registries/push/write"]),
)

PARTS = [
    *(
        Part(StoreKind.CACHE, Scope.LOCAL, trust, f"{CONTAINER}/{trust}/")
        for trust in Trust
    ),
    Part(StoreKind.REGISTRY, Scope.LOCAL, Trust.TRUSTED, REGISTRY, "images"),
]
UNTRUSTED, TRUSTED, RELEASE, IMAGES = range(4)


def pod(*things: Thing, parts: Sequence[Part] = PARTS, namespace: str = "") -> Answer:
    with_credential = things
    if not any(t.type.endswith("FederatedIdentityCredential") for t in things):
        with_credential = (*things, credential())
    if not any(t.type.endswith("StorageAccount") for t in things):
        with_credential = (*with_credential, account())
    reader = AzureReader([((*BASE, *with_credential), "")])
    return reader.pod(namespace or "j-tests--azure", "job", "demo", parts)


def verbs(answer: Answer, part: int) -> tuple[str, str, str]:
    found = answer.access[part]
    return found["read"], found["write"], found["insert"]


def test_exact_grants() -> None:
    answer = pod(
        assignment("reader", condition=READ),
        assignment("writer", condition=WRITE),
        assignment("puller", REGISTRY),
    )
    assert verbs(answer, TRUSTED) == ("full", "full", "none")
    assert verbs(answer, RELEASE) == ("none", "none", "none")
    assert verbs(answer, IMAGES) == ("full", "none", "none")
    assert answer.strays == ()
    assert answer.identities == (IDENTITY,)
    assert all(not a["beyond"] and not a["unclear"] for a in answer.access)


def test_adding_is_inserting_and_nothing_else() -> None:
    answer = pod(assignment("adder", condition=WRITE))
    assert verbs(answer, TRUSTED) == ("none", "none", "full")


def test_a_condition_does_not_narrow_what_it_does_not_name() -> None:
    answer = pod(assignment(CONTRIBUTOR, condition=READ))
    assert verbs(answer, RELEASE) == ("none", "full", "none")
    assert f"{BLOBS}/delete" in answer.access[TRUSTED]["beyond"]
    assert f"{BLOBS}/write on {CONTAINER} outside all trust levels" in answer.strays


def test_reading_without_listing_is_partial_and_so_is_a_piece() -> None:
    only_objects = (
        READ.partition(" AND ((")[0] + f" AND !(ActionMatches{{'{BLOBS}/read'}}"
    )
    only_objects += " AND SubOperationMatches{'Blob.List'})"
    assert verbs(pod(assignment("reader", condition=only_objects)), TRUSTED)[0] == (
        "partial"
    )
    piece = WRITE.replace("'trusted/'", "'trusted/one/'")
    assert verbs(pod(assignment("writer", condition=piece)), TRUSTED)[1] == "partial"


def test_listing_everything_is_a_stray() -> None:
    loose = READ.partition(" AND ((")[0]
    answer = pod(assignment("reader", condition=loose))
    assert f"listing all of {CONTAINER}" in answer.strays


@pytest.mark.parametrize("scope", [GROUP, "/subscriptions/s", ACCOUNT])
def test_a_wider_scope_reaches_the_part_and_is_a_stray(scope: str) -> None:
    answer = pod(assignment("reader", scope))
    assert [verbs(answer, part)[0] for part in (UNTRUSTED, TRUSTED, RELEASE)] == [
        "full"
    ] * 3
    assert f"role reader on {scope}" in answer.strays


def test_scopes_end_at_a_slash_and_compare_without_case() -> None:
    assert covers(ACCOUNT, f"{ACCOUNT}2") is Truth.NO
    assert covers(ACCOUNT.upper(), CONTAINER) is Truth.YES
    assert covers("/providers/Microsoft.Management/managementGroups/m", GROUP) is (
        Truth.UNSURE
    )
    assert verbs(pod(assignment("reader", f"{CONTAINER}2")), TRUSTED)[0] == "none"


def test_owner_gives_itself_everything() -> None:
    answer = pod(assignment(OWNER, GROUP))
    beyond = answer.access[TRUSTED]["beyond"]
    assert "Microsoft.Authorization/roleAssignments/write" in beyond
    assert "Microsoft.Storage/storageAccounts/listKeys/action" in beyond
    # Managing is not reading: "*" of actions holds no data action.
    assert verbs(answer, TRUSTED)[0] == "none"


def test_not_actions_take_away_from_their_own_set_only() -> None:
    without = role("odd", actions=["*"], without=["*/pull/read"])
    assert verbs(pod(without, assignment("odd", REGISTRY)), IMAGES)[:2] == (
        "none",
        "full",
    )
    both = pod(without, assignment("odd", REGISTRY), assignment("puller", REGISTRY))
    assert verbs(both, IMAGES)[0] == "full"


def test_a_role_that_nobody_knows_is_unclear() -> None:
    answer = pod(assignment("11111111-0000-0000-0000-000000000000"))
    assert verbs(answer, TRUSTED)[0] == "cannot-tell"
    assert answer.access[TRUSTED]["unclear"]


@pytest.mark.parametrize(
    ("condition", "version"),
    [pytest.param("((", "2.0", id="malformed"), pytest.param(READ, "1.0", id="old")],
)
def test_conditions_that_cannot_be_read_are_problems(
    condition: str, version: str
) -> None:
    thing = assignment("reader", condition=condition, version=version)
    reader = AzureReader([((*BASE, credential(), account(), thing), "")])
    assert len(reader.problems) == 1
    answer = reader.pod("j-tests--azure", "job", "demo", PARTS)
    assert verbs(answer, TRUSTED)[0] == "cannot-tell"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"subject": SUBJECT + "x"}, id="subject"),
        pytest.param({"subject": SUBJECT.upper()}, id="case"),
        pytest.param({"subject": "system:serviceaccount:*:job"}, id="pattern"),
        pytest.param({"issuer": ISSUER.rstrip("/")}, id="slash"),
        pytest.param({"audiences": ["sts.amazonaws.com"]}, id="audience"),
    ],
)
def test_a_token_must_be_equal_in_every_character(change: dict[str, Any]) -> None:
    answer = pod(credential(**change), assignment("reader"))
    assert answer.identities == ()
    assert verbs(answer, TRUSTED)[0] == "none"


def test_a_credential_by_expression_is_unclear() -> None:
    answer = pod(credential(subject=""), assignment("reader", condition=READ))
    assert verbs(answer, TRUSTED)[0] == "cannot-tell"


def test_other_pods_and_other_clusters_get_nothing() -> None:
    assert pod(assignment("reader"), namespace="j-other--azure").identities == ()
    reader = AzureReader([((*BASE, credential(), assignment("reader")), "")])
    assert reader.pod("j-tests--azure", "job", "elsewhere", PARTS).identities == ()


def test_assignments_of_others_do_not_count() -> None:
    assert verbs(pod(assignment("reader", principal="x")), TRUSTED)[0] == "none"


@pytest.mark.parametrize(
    ("change", "opening"),
    [
        ({"allowSharedKeyAccess": True}, "takes shared keys"),
        # Azure's default: what is not said is open.
        ({"allowSharedKeyAccess": ...}, "takes shared keys"),
        ({"allowBlobPublicAccess": True}, "may have public containers"),
        ({"isLocalUserEnabled": True}, "has local users"),
        ({"isSftpEnabled": True}, "is open by SFTP"),
    ],
)
def test_ways_in_without_an_assignment(change: dict[str, Any], opening: str) -> None:
    answer = pod(account(**change))
    assert answer.strays == (f"storage account acc {opening}",)


@pytest.mark.parametrize(
    "change",
    [
        {"enableHttpsTrafficOnly": False},
        {"minimumTlsVersion": "TLS1_0"},
        {"minimumTlsVersion": ...},
    ],
)
def test_requests_without_tls(change: dict[str, Any]) -> None:
    answer = pod(account(**change), assignment("reader", condition=READ))
    assert answer.access[TRUSTED]["without_tls"] == ("read",)


def test_open_containers_and_registries() -> None:
    answer = pod(
        Thing(
            "azure-native:storage:BlobContainer", CONTAINER, {"publicAccess": "Blob"}
        ),
        Thing(
            "azure-native:containerregistry:Registry",
            REGISTRY,
            {"adminUserEnabled": True, "anonymousPullEnabled": True},
        ),
    )
    assert answer.strays == (
        f"container {CONTAINER} is public",
        "registry reg has an admin user",
        "registry reg is pulled by anyone",
    )


def test_assignments_add_up() -> None:
    access = AzureAccess(
        [*BASE, assignment("reader", condition=READ), assignment("reader")]
    )
    asked = Request(
        "PRINCIPAL", f"{BLOBS}/read", CONTAINER, True, "", {PATH: "x", PREFIX: None}
    )
    assert access.decide(asked) is Truth.YES


GITHUB = GitHub(organization="demo-org")
GOOD = "repo:demo-org/demo:environment:ci"


def federated(*things: Thing, subjects: Sequence[str] = (GOOD,)) -> Answer:
    reader = AzureReader([((*BASE, account(), *things), "")])
    return reader.federated(IDENTITY, subjects, GITHUB, PARTS)


def test_jobs_of_one_environment() -> None:
    answer = federated(
        credential(GOOD, GITHUB.oidc_issuer), assignment("reader", condition=READ)
    )
    assert answer.strays == ()
    assert verbs(answer, TRUSTED)[0] == "full"


@pytest.mark.parametrize(
    ("things", "message"),
    [
        pytest.param([], f"{GOOD} does not get the identity", id="nobody"),
        pytest.param(
            [
                credential(GOOD, GITHUB.oidc_issuer),
                credential("repo:demo-org/demo:pull_request", GITHUB.oidc_issuer),
            ],
            "repo:demo-org/demo:pull_request may get the identity",
            id="pull-request",
        ),
        pytest.param(
            [
                credential(
                    GOOD, GITHUB.oidc_issuer, [EXCHANGE_AUDIENCE, "somebody-else"]
                )
            ],
            f"{GOOD} gets the identity with any audience",
            id="audience",
        ),
        pytest.param(
            [
                credential(GOOD, GITHUB.oidc_issuer),
                credential("repo:evil/demo:environment:ci", GITHUB.oidc_issuer),
            ],
            "repo:evil/demo:environment:ci may get the identity",
            id="stranger",
        ),
    ],
)
def test_trust_that_is_too_wide_or_too_narrow(
    things: list[Thing], message: str
) -> None:
    assert message in federated(*things).strays
