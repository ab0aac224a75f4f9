"""Who gets a role: pods, tokens, roles; with the traps other checkers fall into."""

from __future__ import annotations

import pytest

from review.evaluators.aws_cases import (
    ACCOUNT,
    CLUSTER,
    ISSUER,
    OTHER,
    POD_TRUST,
    ROLE,
    ROOT,
    allow,
    association,
    deny,
    document,
    managed,
    provider,
    role,
    trust,
)
from runfleet.review.evaluators.aws import AssumerKind, AwsAccounts
from runfleet.review.evaluators.decision import Outcome

ALLOWED, DENIED, CANNOT_TELL = Outcome
GITHUB = "token.actions.githubusercontent.com"
GITHUB_ARN = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{GITHUB}"
MAIN = "repo:good/repo:ref:refs/heads/main"
CLUSTER_ARN = CLUSTER.outputs["arn"]


def github(**conditions):
    return trust(
        {"Federated": GITHUB_ARN},
        "sts:AssumeRoleWithWebIdentity",
        Condition={
            operator: {f"{GITHUB}:{key}": value for key, value in keys.items()}
            for operator, keys in conditions.items()
        },
    )


def accounts(*statements, audiences=("sts.amazonaws.com",)):
    return AwsAccounts.from_resources(
        [
            provider(f"https://{GITHUB}", *audiences),
            *role(ROLE, trusts=statements),
        ]
    )


def token(sub, aud="sts.amazonaws.com", **claims):
    return {"iss": f"https://{GITHUB}", "sub": sub, "aud": aud, **claims}


def outcome(found, *args, **more):
    return found.may_assume_with_token(ROLE, token(*args, **more)).outcome


EXACT = github(StringEquals={"aud": "sts.amazonaws.com", "sub": MAIN})


def test_an_exact_subject():
    found = accounts(EXACT)
    assert outcome(found, MAIN) is ALLOWED
    assert outcome(found, "repo:good/repo:pull_request") is DENIED
    assert outcome(found, "repo:Good/repo:ref:refs/heads/main") is DENIED
    assert outcome(found, MAIN, "other") is DENIED
    (who,) = found.who_can_assume(ROLE)
    assert who.kind is AssumerKind.TOKEN
    assert who.subjects == (f"StringEquals {MAIN}",)
    assert who.audiences == ("StringEquals sts.amazonaws.com",)
    assert (who.lets_strangers_in, who.any_audience) == (False, False)


def test_both_forms_of_the_subject():
    both = [
        "repo:O/R:environment:release",
        "repo:O@1/R@2:environment:release",
    ]
    found = accounts(github(StringEquals={"aud": "sts.amazonaws.com", "sub": both}))
    assert [outcome(found, sub) for sub in both] == [ALLOWED, ALLOWED]
    assert outcome(found, "repo:O@1/R@3:environment:release") is DENIED
    assert not found.who_can_assume(ROLE)[0].lets_strangers_in


def test_one_unsafe_value_in_a_list():
    found = accounts(github(StringLike={"sub": [MAIN, "*"]}))
    assert outcome(found, "repo:evil/repo:pull_request") is ALLOWED
    assert found.who_can_assume(ROLE)[0].lets_strangers_in


def test_a_second_unsafe_statement():
    found = accounts(EXACT, github(StringEquals={"aud": "sts.amazonaws.com"}))
    assert outcome(found, "repo:evil/repo:pull_request") is ALLOWED
    assert [who.lets_strangers_in for who in found.who_can_assume(ROLE)] == [
        False,
        True,
    ]


def test_an_unsafe_statement_after_one_for_a_service():
    service = trust({"Service": "ec2.amazonaws.com"}, "sts:AssumeRole")
    found = accounts(service, github())
    assert [(w.kind, w.lets_strangers_in) for w in found.who_can_assume(ROLE)] == [
        (AssumerKind.SERVICE, False),
        (AssumerKind.TOKEN, True),
    ]


@pytest.mark.parametrize(
    "conditions",
    [
        {"StringNotLike": {"sub": MAIN}},
        {"StringNotEquals": {"sub": MAIN}},
        {"ForAllValues:StringEquals": {"actor_name": "x"}},
        {"StringEqualsIfExists": {"nothing": MAIN}},
        {"StringLike": {"sub": "repo:*"}},
        {"StringLike": {"sub": "*:ref:refs/heads/main"}},
        {"StringLike": {"sub": "repo:*/repo:*", "aud": "*"}},
    ],
)
def test_conditions_that_look_good_and_are_not(conditions):
    found = accounts(github(**conditions))
    who = found.who_can_assume(ROLE)[0]
    if conditions.get("StringLike", {}).get("sub") == "repo:*/repo:*":
        assert who.any_audience
        assert outcome(found, "repo:evil/repo:pull_request") is ALLOWED
    else:
        assert who.lets_strangers_in


def test_for_all_values_is_true_without_the_key():
    found = accounts(github(**{"ForAllValues:StringEquals": {"sub": MAIN}}))
    claims = {"iss": f"https://{GITHUB}", "aud": "sts.amazonaws.com"}
    assert found.may_assume_with_token(ROLE, claims).outcome is ALLOWED
    assert outcome(found, "repo:evil/repo:pull_request") is DENIED


def test_wildcards_of_string_like():
    found = accounts(github(StringLike={"sub": "repo:good/repo:ref:refs/heads/r?-*"}))
    assert outcome(found, "repo:good/repo:ref:refs/heads/r1-x") is ALLOWED
    assert outcome(found, "repo:good/repo:ref:refs/heads/r-x") is DENIED
    assert outcome(found, "repo:good/repository:ref:refs/heads/r1-x") is DENIED


def test_a_deny_keeps_out():
    no_prs = {**github(StringLike={"sub": "*:pull_request"}), "Effect": "Deny"}
    found = accounts(github(StringLike={"sub": "repo:good/repo:*"}), no_prs)
    assert outcome(found, MAIN) is ALLOWED
    assert outcome(found, "repo:good/repo:pull_request") is DENIED


def test_other_claims_are_not_guessed():
    condition = {"StringEquals": {"sub": MAIN, "job_workflow_ref": "w"}}
    found = accounts(github(**condition))
    assert outcome(found, MAIN, job_workflow_ref="w") is CANNOT_TELL


def test_the_provider_decides_on_issuer_and_audience():
    found = accounts(EXACT, audiences=("other",))
    assert outcome(found, MAIN) is DENIED
    claims = {**token(MAIN), "iss": "https://evil.example"}
    assert accounts(EXACT).may_assume_with_token(ROLE, claims).denied
    unknown = AwsAccounts.from_resources(role(ROLE, trusts=[EXACT]))
    assert outcome(unknown, MAIN) is CANNOT_TELL
    assert outcome(unknown, "repo:evil/x:pull_request") is DENIED


def pods(*things, trusts=(POD_TRUST,), **more):
    return AwsAccounts.from_resources(
        [CLUSTER, *role(ROLE, trusts=trusts), association(**more), *things]
    )


def test_a_pod_gets_the_role_of_its_association_only():
    found = pods()
    assert found.reachable("ci", "tester", "cell") == {ROLE}
    assert found.reachable("ci", "default", "cell") == frozenset()
    assert found.reachable("kube-system", "tester", "cell") == frozenset()
    assert found.reachable("ci", "tester", "other") == frozenset()


def bound(namespace="ci", account="tester", **more):
    tags = {
        "aws:RequestTag/kubernetes-namespace": namespace,
        "aws:RequestTag/kubernetes-service-account": account,
    }
    return {**POD_TRUST, "Condition": {"StringEquals": {**tags, **more}}}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (bound(), ALLOWED),
        (bound("other"), DENIED),
        (
            bound(**{"aws:SourceArn": CLUSTER_ARN, "aws:SourceAccount": ACCOUNT}),
            ALLOWED,
        ),
        (bound(**{"aws:SourceArn": CLUSTER_ARN + "2"}), DENIED),
        (bound(**{"aws:SourceAccount": OTHER}), DENIED),
        (bound(**{"aws:RequestTag/eks-cluster-arn": CLUSTER_ARN}), ALLOWED),
        (bound(**{"aws:RequestTag/kubernetes-pod-name": "p"}), CANNOT_TELL),
        (bound(**{"aws:RequestTag/other": "p"}), DENIED),
        (trust({"Service": "pods.eks.amazonaws.com"}, "sts:AssumeRole"), DENIED),
        (trust({"Service": "ec2.amazonaws.com"}, "sts:*"), DENIED),
    ],
)
def test_trust_of_pods(statement, expected):
    found = pods(trusts=[statement])
    assert found.may_assume_as_pod(found.associations[0]).outcome is expected


def test_a_second_trust_statement_for_any_pod():
    found = pods(trusts=[bound("other"), POD_TRUST])
    assert found.may_assume_as_pod(found.associations[0]).allowed
    assert [who.lets_strangers_in for who in found.who_can_assume(ROLE)] == [
        False,
        True,
    ]
    assert found.who_can_assume(ROLE)[1].associations == found.associations


def test_without_session_tags_no_tag_condition_holds():
    found = pods(trusts=[bound()], disableSessionTags=True)
    assert found.may_assume_as_pod(found.associations[0]).denied
    only_assume = trust({"Service": "pods.eks.amazonaws.com"}, "sts:AssumeRole")
    found = pods(trusts=[only_assume], disableSessionTags=True)
    assert found.may_assume_as_pod(found.associations[0]).allowed
    assert found.pod_session(found.associations[0]).tags == {}


def test_the_session_of_a_pod():
    found = pods(policy=document(allow("s3:GetObject")))
    session = found.pod_session(found.associations[0])
    assert session.tags == {
        "eks-cluster-arn": CLUSTER_ARN,
        "eks-cluster-name": "cell",
        "kubernetes-namespace": "ci",
        "kubernetes-service-account": "tester",
    }
    assert session.unknown_tags == {"kubernetes-pod-name", "kubernetes-pod-uid"}
    assert [policy.owner for policy in session.policies] == [found.associations[0].urn]


TARGET = f"arn:aws:iam::{OTHER}:role/central"


def target(*statements):
    return AwsAccounts.from_resources(role(TARGET, trusts=statements), account=OTHER)


def test_a_target_role_replaces_the_first_one():
    into = trust(
        {"AWS": ROLE},
        ["sts:AssumeRole", "sts:TagSession"],
        Condition={"StringEquals": {"sts:ExternalId": "x/cell/ci/tester"}},
    )
    may = role(ROLE, allow(["sts:AssumeRole", "sts:TagSession"], TARGET))
    given = association(targetRoleArn=TARGET, externalId="x/cell/ci/tester")
    cell = AwsAccounts.from_resources([CLUSTER, *may, given])
    both = AwsAccounts.combined([cell, target(into)])
    assert both.reachable("ci", "tester", "cell") == {TARGET}
    wrong = association(targetRoleArn=TARGET, externalId="y")
    cell = AwsAccounts.from_resources([CLUSTER, *may, wrong])
    both = AwsAccounts.combined([cell, target(into)])
    assert both.reachable("ci", "tester", "cell") == frozenset()


def test_roles_that_can_be_assumed_from_there_count():
    third = f"arn:aws:iam::{ACCOUNT}:role/third"
    assume = [allow("sts:AssumeRole", [TARGET, third])]
    cell = AwsAccounts.from_resources(
        [
            CLUSTER,
            *role(ROLE, *assume),
            *role(third, trusts=[trust({"AWS": TARGET}, "sts:AssumeRole")]),
            association(),
        ]
    )
    central = AwsAccounts.from_resources(
        role(
            TARGET,
            allow("sts:AssumeRole", third),
            trusts=[trust({"AWS": ROOT}, "sts:AssumeRole")],
        ),
        account=OTHER,
    )
    both = AwsAccounts.combined([cell, central])
    found = {item.session.role_arn: item for item in both.reach("ci", "tester", "cell")}
    assert found.keys() == {ROLE, TARGET, third}
    assert (found[third].via, found[TARGET].via) == (TARGET, ROLE)
    assert found[third].session.tags["kubernetes-namespace"] == "ci"


def test_tokens_of_the_cluster_count():
    sub = {"StringEquals": {f"{ISSUER}:sub": "system:serviceaccount:ci:tester"}}
    arn = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{ISSUER}"
    by_token = trust({"Federated": arn}, "sts:AssumeRoleWithWebIdentity", Condition=sub)
    found = AwsAccounts.from_resources(
        [
            CLUSTER,
            provider(f"https://{ISSUER}", "sts.amazonaws.com"),
            *role(ROLE, trusts=[by_token]),
        ]
    )
    assert found.reachable("ci", "tester", "cell") == {ROLE}
    assert found.reachable("ci", "other", "cell") == frozenset()
    assert found.who_can_assume(ROLE)[0].lets_strangers_in is False


def test_hidden_trust_is_open():
    things = role(ROLE, assumeRolePolicy="[secret]")
    found = AwsAccounts.from_resources([CLUSTER, *things, association()])
    assert found.who_can_assume(ROLE)[0].lets_strangers_in
    assert found.reachable("ci", "tester", "cell") == {ROLE}
    (item,) = found.reach("ci", "tester", "cell")
    assert item.decision.outcome is CANNOT_TELL


def test_wide_principals():
    everyone = trust("*", "sts:AssumeRole")
    account = trust({"AWS": [OTHER, ROOT]}, "sts:AssumeRole")
    found = AwsAccounts.from_resources(role(ROLE, trusts=[everyone, account]))
    assert [(w.kind, w.principal) for w in found.who_can_assume(ROLE)] == [
        (AssumerKind.EVERYONE, "*"),
        (AssumerKind.ACCOUNT, OTHER),
        (AssumerKind.ACCOUNT, ROOT),
    ]


def test_deny_of_assuming_in_the_boundary_counts():
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/b"
    things = [
        CLUSTER,
        managed(boundary, allow("*"), deny("sts:AssumeRole")),
        *role(ROLE, allow("sts:*"), permissionsBoundary=boundary),
        *role(f"{ROLE}-2", trusts=[trust({"AWS": ROOT}, "sts:AssumeRole")]),
        association(),
    ]
    found = AwsAccounts.from_resources(things)
    assert found.reachable("ci", "tester", "cell") == {ROLE}
