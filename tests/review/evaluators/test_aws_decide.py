"""AWS's evaluation logic, one test per rule."""

from __future__ import annotations

import pytest

from review.evaluators.aws_cases import (
    ACCOUNT,
    BUCKET,
    KEY,
    OTHER,
    ROLE,
    ROOT,
    SESSION,
    Thing,
    allow,
    bucket,
    deny,
    document,
    key,
    managed,
    role,
    trust,
)
from runfleet.review.evaluators.aws import AwsAccounts, Request, Session
from runfleet.review.evaluators.aws_policy import PolicyKind, parse_policy
from runfleet.review.evaluators.decision import Outcome

ALLOWED, DENIED, CANNOT_TELL = Outcome
OBJECT = f"{BUCKET}/k"
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/boundary"


def ask(things, action="s3:GetObject", resource=OBJECT, session=None, **more):
    accounts = AwsAccounts.from_resources(things)
    assert accounts.problems == ()
    request = Request(session or Session(ROLE), action, resource, **more)
    return accounts.decide(request)


def outcome(things, *args, **more):
    return ask(things, *args, **more).outcome


def on(principal, action="s3:GetObject", resource=f"{BUCKET}/*", **more):
    return {
        "Effect": "Allow",
        "Principal": principal,
        "Action": action,
        "Resource": resource,
        **more,
    }


READ = allow("s3:GetObject", f"{BUCKET}/*")


def test_nothing_allows():
    assert outcome([*role(), *bucket()]) is DENIED


def test_identity_policy_allows():
    decision = ask([*role(ROLE, READ), *bucket()])
    assert decision.allowed
    assert str(decision.reasons[0]) == (
        "allows it (Statement[0] of inline policy grants of "
        "urn:pulumi:aws::runfleet::aws:iam/rolePolicy:RolePolicy::tester-policy)"
    )


def test_policies_inside_the_role_and_attached_ones_count():
    inline = {"name": "in", "policy": document(READ)}
    assert outcome([*role(inlinePolicies=[inline]), *bucket()]) is ALLOWED
    policy = managed(f"arn:aws:iam::{ACCOUNT}:policy/read", READ)
    assert outcome([policy, *role(managedPolicyArns=[policy.id]), *bucket()]) is ALLOWED
    attachment = Thing(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        "a",
        inputs={"role": "tester", "policyArn": policy.id},
    )
    assert outcome([policy, attachment, *role(), *bucket()]) is ALLOWED


def test_explicit_deny_wins_wherever_it_stands():
    assert outcome([*role(ROLE, READ, deny("s3:*")), *bucket()]) is DENIED
    in_bucket = {**on("*", "s3:*", "*"), "Effect": "Deny"}
    decision = ask([*role(ROLE, READ), *bucket("cache", in_bucket)])
    assert decision.denied
    assert str(decision.reasons[0]).startswith(
        "denies it (Statement[0] of bucket policy"
    )


def test_deny_with_a_condition_holds_only_where_the_condition_does():
    insecure = {"Bool": {"aws:SecureTransport": "false"}}
    tls_only = {**on("*", "s3:*", "*", Condition=insecure), "Effect": "Deny"}
    things = [*role(ROLE, READ), *bucket("cache", tls_only)]
    assert outcome(things, context={"aws:SecureTransport": "true"}) is ALLOWED
    assert outcome(things, context={"aws:SecureTransport": "false"}) is DENIED
    assert outcome(things) is CANNOT_TELL


def test_not_action_and_not_resource_allow_all_the_rest():
    rest = {"Effect": "Allow", "NotAction": "iam:*", "NotResource": "arn:aws:s3:::x/*"}
    assert outcome([*role(ROLE, rest), *bucket()]) is ALLOWED
    assert outcome([*role(ROLE, rest), *bucket()], "s3:DeleteBucket", BUCKET) is ALLOWED
    assert outcome([*role(ROLE, rest), *bucket("x")], resource="arn:aws:s3:::x/k") is (
        DENIED
    )


@pytest.mark.parametrize(
    ("principal", "expected"),
    [
        ({"AWS": ROLE}, ALLOWED),
        ({"AWS": SESSION}, ALLOWED),
        ("*", ALLOWED),
        ({"AWS": "*"}, ALLOWED),
        ({"AWS": ROOT}, DENIED),
        ({"AWS": ACCOUNT}, DENIED),
        ({"AWS": OTHER}, DENIED),
        ({"AWS": ROLE.replace("tester", "builder")}, DENIED),
        ({"Service": "ec2.amazonaws.com"}, DENIED),
    ],
)
def test_resource_policy_alone_in_the_same_account(principal, expected):
    things = [*role(), *bucket("cache", on(principal))]
    assert outcome(things, session=Session(ROLE, "job-1")) is expected


def test_a_session_whose_name_is_not_known():
    things = [*role(), *bucket("cache", on({"AWS": SESSION}))]
    assert outcome(things) is CANNOT_TELL
    assert outcome(things, session=Session(ROLE, "job-2")) is DENIED


@pytest.mark.parametrize(
    ("principal", "expected"),
    [({"AWS": ROLE}, DENIED), ({"AWS": SESSION}, ALLOWED), ("*", ALLOWED)],
)
def test_boundary_and_session_policy_do_not_limit_what_names_the_session(
    principal, expected
):
    policy = managed(BOUNDARY, allow("s3:PutObject"))
    session = Session(ROLE, "job-1")
    bounded = role(permissionsBoundary=BOUNDARY)
    things = [policy, *bounded, *bucket("cache", on(principal))]
    assert outcome(things, session=session) is expected
    narrow = parse_policy(document(allow("s3:PutObject")), PolicyKind.SESSION)
    narrowed = Session(ROLE, "job-1", policies=(narrow,))
    assert outcome([*role(), *bucket("cache", on(principal))], session=narrowed) is (
        expected
    )


def test_boundary_limits_identity_policies():
    policy = managed(BOUNDARY, allow("s3:PutObject"))
    assert (
        outcome([policy, *role(ROLE, READ, permissionsBoundary=BOUNDARY), *bucket()])
        is DENIED
    )
    wide = managed(BOUNDARY, allow(["s3:Get*", "s3:PutObject"]))
    things = [wide, *role(ROLE, READ, permissionsBoundary=BOUNDARY), *bucket()]
    assert outcome(things) is ALLOWED
    assert outcome(things, "s3:PutObject") is DENIED


def test_a_deny_in_the_boundary_reaches_resource_policies():
    policy = managed(BOUNDARY, allow("*"), deny("s3:*"))
    bounded = role(permissionsBoundary=BOUNDARY)
    things = [policy, *bounded, *bucket("cache", on({"AWS": SESSION}))]
    assert outcome(things, session=Session(ROLE, "job-1")) is DENIED


def test_session_policy_narrows():
    for action, expected in (("s3:GetObject", ALLOWED), ("s3:PutObject", DENIED)):
        narrow = parse_policy(document(allow(action)), PolicyKind.SESSION)
        session = Session(ROLE, policies=(narrow,))
        assert outcome([*role(ROLE, READ), *bucket()], session=session) is expected


def test_not_principal_with_deny():
    listed = [ROLE, SESSION, ROOT]
    session = Session(ROLE, "job-1")

    def but(names):
        statement = {**on("*", "s3:*", "*"), "Effect": "Deny"}
        del statement["Principal"]
        return bucket("cache", {**statement, "NotPrincipal": {"AWS": names}})

    assert outcome([*role(ROLE, READ), *but(listed)], session=session) is ALLOWED
    assert outcome([*role(ROLE, READ), *but([ROLE])], session=session) is CANNOT_TELL
    assert outcome([*role(ROLE, READ), *but([OTHER])], session=session) is DENIED
    bounded = role(ROLE, READ, permissionsBoundary=BOUNDARY)
    things = [managed(BOUNDARY, allow("*")), *bounded, *but(listed)]
    assert outcome(things, session=session) is DENIED


def test_not_principal_with_allow_lets_everyone_else_in():
    statement = on("*")
    del statement["Principal"]
    things = [
        *role(),
        *bucket("cache", {**statement, "NotPrincipal": {"AWS": OTHER}}),
    ]
    assert outcome(things) is ALLOWED


def theirs(*statements):
    return AwsAccounts.from_resources(bucket("cache", *statements), account=OTHER)


@pytest.mark.parametrize(
    ("identity", "principal", "expected"),
    [
        ([READ], None, DENIED),
        ([], {"AWS": ROLE}, DENIED),
        ([READ], {"AWS": ROLE}, ALLOWED),
        ([READ], {"AWS": ROOT}, ALLOWED),
        ([READ], "*", ALLOWED),
        ([READ], {"AWS": f"arn:aws:iam::{OTHER}:root"}, DENIED),
    ],
)
def test_another_account_needs_both(identity, principal, expected):
    cell = AwsAccounts.from_resources(role(ROLE, *identity))
    central = theirs(*([on(principal)] if principal else []))
    both = AwsAccounts.combined([cell, central])
    assert both.decide(Request(Session(ROLE), "s3:GetObject", OBJECT)).outcome is (
        expected
    )


def test_the_boundary_limits_in_another_account_too():
    policy = managed(BOUNDARY, allow("s3:PutObject"))
    cell = AwsAccounts.from_resources(
        [policy, *role(ROLE, READ, permissionsBoundary=BOUNDARY)]
    )
    both = AwsAccounts.combined([cell, theirs(on({"AWS": ROLE}))])
    assert both.decide(Request(Session(ROLE), "s3:GetObject", OBJECT)).denied


def test_a_bucket_outside_the_record_is_not_guessed():
    assert outcome(role(ROLE, READ)) is CANNOT_TELL
    assert outcome(role()) is CANNOT_TELL
    assert outcome(role(ROLE, deny("s3:*"))) is DENIED


DECRYPT = allow("kms:Decrypt", KEY)


@pytest.mark.parametrize(
    ("identity", "principal", "expected"),
    [
        ([DECRYPT], {"AWS": ROOT}, ALLOWED),
        ([], {"AWS": ROOT}, DENIED),
        ([DECRYPT], {"AWS": ROLE.replace("tester", "x")}, DENIED),
        ([], {"AWS": ROLE}, ALLOWED),
        ([DECRYPT], {"AWS": OTHER}, DENIED),
    ],
)
def test_key_policy_must_allow_and_may_delegate(identity, principal, expected):
    things = [*role(ROLE, *identity), key(KEY, on(principal, "kms:*", "*"))]
    assert outcome(things, "kms:Decrypt", KEY) is expected


def test_a_key_without_policy_has_the_default_one():
    assert outcome([*role(ROLE, DECRYPT), key()], "kms:Decrypt", KEY) is ALLOWED
    assert outcome([*role(), key()], "kms:Decrypt", KEY) is DENIED


def test_a_key_policy_in_its_own_resource():
    separate = Thing(
        "aws:kms/keyPolicy:KeyPolicy",
        "p",
        inputs={"keyId": "0f3a", "policy": document(on({"AWS": ROLE}, "kms:*", "*"))},
    )
    assert outcome([*role(), key(), separate], "kms:Decrypt", KEY) is ALLOWED
    # It takes the place of the default policy, which would delegate to IAM.
    builder = ROLE.replace("tester", "builder")
    others = role(builder, allow("kms:*"))
    session = Session(builder)
    things = [*others, key(), separate]
    assert outcome(things, "kms:Decrypt", KEY, session=session) is DENIED
    assert outcome([*role(ROLE, allow("kms:*")), key(), separate], "kms:Sign", KEY) is (
        ALLOWED
    )


REPOSITORY = f"arn:aws:ecr:us-east-2:{ACCOUNT}:repository/cache/x"


def test_repository_policies_have_no_resource():
    repository = Thing(
        "aws:ecr/repository:Repository",
        "x",
        "cache/x",
        {"name": "cache/x"},
        {"arn": REPOSITORY, "name": "cache/x"},
    )
    policy = Thing(
        "aws:ecr/repositoryPolicy:RepositoryPolicy",
        "p",
        "cache/x",
        {
            "repository": "cache/x",
            "policy": document(
                {
                    "Effect": "Deny",
                    "Principal": "*",
                    "Action": "ecr:PutImage",
                    "Condition": {"StringNotEquals": {"aws:PrincipalArn": "nobody"}},
                }
            ),
        },
    )
    things = [*role(ROLE, allow("ecr:*")), repository, policy]
    assert outcome(things, "ecr:PutImage", REPOSITORY) is DENIED
    assert outcome(things, "ecr:BatchGetImage", REPOSITORY) is ALLOWED
    made_by_registry = REPOSITORY.replace("/x", "/y")
    assert outcome(things, "ecr:PutImage", made_by_registry) is ALLOWED
    template = Thing(
        "aws:ecr/repositoryCreationTemplate:RepositoryCreationTemplate",
        "t",
        inputs={"prefix": "cache", "repositoryPolicy": policy.inputs["policy"]},
    )
    assert outcome([*things, template], "ecr:PutImage", made_by_registry) is DENIED


def test_queue_policies_by_url():
    arn = f"arn:aws:sqs:us-east-2:{ACCOUNT}:q"
    queue = Thing("aws:sqs/queue:Queue", "q", "https://q", {}, {"arn": arn})
    policy = Thing(
        "aws:sqs/queuePolicy:QueuePolicy",
        "p",
        inputs={
            "queueUrl": "https://q",
            "policy": document(on({"AWS": ROLE}, "sqs:ReceiveMessage", arn)),
        },
    )
    things = [*role(), queue, policy]
    assert outcome(things, "sqs:ReceiveMessage", arn) is ALLOWED
    assert outcome(things, "sqs:SendMessage", arn) is DENIED


def test_vpc_endpoint_policy_must_let_the_request_pass():
    def endpoint(*statements):
        inputs = {"policy": document(*statements)} if statements else {}
        return Thing("aws:ec2/vpcEndpoint:VpcEndpoint", "e", "vpce-1", inputs)

    via = {"aws:SourceVpce": "vpce-1"}
    own = [*role(ROLE, READ), *bucket()]
    assert outcome([*own, endpoint()], context=via) is ALLOWED
    assert outcome([*own, endpoint(on("*"))], context=via) is ALLOWED
    assert outcome([*own, endpoint(on("*", "s3:PutObject"))], context=via) is DENIED
    assert outcome([*own, endpoint(on("*", "s3:PutObject"))]) is ALLOWED
    assert outcome(own, context=via) is CANNOT_TELL


def test_tags_of_role_and_session():
    team = {"StringEquals": {"aws:PrincipalTag/team": "${aws:PrincipalTag/owner}"}}
    things = [
        *role(ROLE, allow("s3:*", Condition=team), tags={"owner": "a", "team": "b"}),
        *bucket(),
    ]
    assert outcome(things) is DENIED
    assert outcome(things, session=Session(ROLE, tags={"team": "a"})) is ALLOWED
    hidden = Session(ROLE, unknown_tags=frozenset({"team"}))
    assert outcome(things, session=hidden) is CANNOT_TELL


def test_keys_that_follow_from_the_session():
    follows = {
        "StringEquals": {
            "aws:PrincipalAccount": ACCOUNT,
            "aws:ResourceAccount": "${aws:PrincipalAccount}",
            "aws:PrincipalType": "AssumedRole",
        },
        "ArnLike": {"aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:role/ci/*"},
        "Null": {"aws:username": "true"},
    }
    assert (
        outcome([*role(ROLE, allow("s3:*", Condition=follows)), *bucket()]) is ALLOWED
    )
    org = {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}
    assert (
        outcome([*role(ROLE, allow("s3:*", Condition=org)), *bucket()]) is CANNOT_TELL
    )


def test_unknown_operator_is_not_guessed():
    odd = {"StringStartsWith": {"aws:PrincipalArn": "arn"}}
    assert (
        outcome([*role(ROLE, allow("s3:*", Condition=odd)), *bucket()]) is CANNOT_TELL
    )
    denied = [*role(ROLE, READ, deny("s3:*", Condition=odd)), *bucket()]
    assert outcome(denied) is CANNOT_TELL


SIGNATURE = "4dabf18193072939515e22adb298388d"


@pytest.mark.parametrize(
    "hidden",
    [
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "[secret]",
        {SIGNATURE: "1b47061264138c4ac30d75fd1eb44270", "value": "[secret]"},
    ],
)
def test_hidden_documents_are_not_guessed(hidden):
    inline = {"name": "in", "policy": hidden}
    assert outcome([*role(ROLE, inlinePolicies=[inline]), *bucket()]) is CANNOT_TELL
    assert outcome([*role(ROLE, READ, inlinePolicies=hidden), *bucket()]) is CANNOT_TELL


def test_policies_of_aws_are_not_guessed_unless_given():
    arn = "arn:aws:iam::aws:policy/ReadOnlyAccess"
    things = [*role(managedPolicyArns=[arn]), *bucket()]
    assert outcome(things) is CANNOT_TELL
    given = AwsAccounts.from_resources(things, managed_policies={arn: document(READ)})
    assert given.decide(Request(Session(ROLE), "s3:GetObject", OBJECT)).allowed


def test_malformed_documents_are_reported_and_not_guessed():
    accounts = AwsAccounts.from_resources(
        [*role(ROLE, {"Effect": "Allow", "Action": "s3:*"}), *bucket()]
    )
    assert [str(problem) for problem in accounts.problems] == [
        "urn:pulumi:aws::runfleet::aws:iam/rolePolicy:RolePolicy::tester-policy: "
        "Statement[0].Resource: missing"
    ]
    decision = accounts.decide(Request(Session(ROLE), "s3:GetObject", OBJECT))
    assert decision.outcome is CANNOT_TELL


def test_a_role_outside_the_record_is_not_guessed():
    assert outcome(bucket(), session=Session(ROLE)) is CANNOT_TELL


def test_services_whose_policies_are_not_read():
    things = role(ROLE, allow("sns:Publish"), allow("firehose:PutRecord"))
    topic = f"arn:aws:sns:us-east-2:{ACCOUNT}:t"
    assert outcome(things, "sns:Publish", topic) is CANNOT_TELL
    stream = f"arn:aws:firehose:us-east-2:{ACCOUNT}:deliverystream/t"
    assert outcome(things, "firehose:PutRecord", stream) is ALLOWED
    assert outcome(things, "firehose:DeleteDeliveryStream", stream) is DENIED


TARGET = f"arn:aws:iam::{ACCOUNT}:role/target"


@pytest.mark.parametrize(
    ("identity", "principal", "expected"),
    [
        ([allow("sts:AssumeRole", TARGET)], {"AWS": ROOT}, ALLOWED),
        ([], {"AWS": ROOT}, DENIED),
        ([], {"AWS": ROLE}, ALLOWED),
        ([allow("sts:AssumeRole", TARGET)], {"AWS": OTHER}, DENIED),
    ],
)
def test_assuming_a_role_needs_its_trust_policy(identity, principal, expected):
    target = role(TARGET, trusts=[trust(principal, "sts:AssumeRole")])
    things = [*role(ROLE, *identity), *target]
    assert outcome(things, "sts:AssumeRole", TARGET) is expected
