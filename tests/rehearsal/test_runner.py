"""One rehearsal: what the record holds, and how it fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
import pytest
import rehearsal_programs as programs
from pulumi.runtime.settings import get_root_resource

from runfleet.errors import InputError, MissingError, Problem
from runfleet.rehearsal.errors import RehearsalError
from runfleet.rehearsal.record import Record, dump_record
from runfleet.rehearsal.runner import rehearse
from runfleet.rehearsal.values import SECRET_TEXT, secret

HIDDEN = secret(SECRET_TEXT)


def run(program: Callable[[], Any], **options: Any) -> Record:
    options.setdefault("emulate", False)
    return rehearse(program, project="fleet", stack="aws", **options)


def names(record: Record) -> list[str]:
    return [resource.name for resource in record.resources]


def one(record: Record, name: str) -> Any:
    (found,) = [r for r in record.resources if r.name == name]
    return found


def test_urns_hold_the_whole_chain_of_parent_types_without_the_stack() -> None:
    record = run(programs.network)
    prefix = "urn:pulumi:aws::fleet::"
    chain = "test:index:Outer$test:index:Inner$aws:s3/bucket:Bucket"
    assert [resource.urn for resource in record.resources] == [
        f"{prefix}pulumi:pulumi:Stack::fleet-aws",
        f"{prefix}pulumi:providers:aws::prod",
        f"{prefix}test:index:Outer::net",
        f"{prefix}test:index:Outer$aws:ec2/vpc:Vpc::net-vpc",
        f"{prefix}test:index:Outer$aws:ec2/subnet:Subnet::net-subnet",
        f"{prefix}test:index:Outer$test:index:Inner::net-inner",
        f"{prefix}{chain}::net-inner-bucket",
    ]
    outer = one(record, "net")
    assert [r.name for r in record.children(outer.urn)] == [
        "net-vpc",
        "net-subnet",
        "net-inner",
    ]
    assert (outer.custom, outer.id, outer.provider) == (False, "", "")
    assert outer.outputs == {"vpc": one(record, "net-vpc").id}


def test_inputs_dependencies_and_outputs_are_recorded() -> None:
    record = run(programs.network)
    vpc, subnet = one(record, "net-vpc"), one(record, "net-subnet")
    assert subnet.inputs == {"cidrBlock": "10.0.1.0/24", "vpcId": vpc.id}
    assert subnet.dependencies == (vpc.urn,)
    assert subnet.property_dependencies == {"vpcId": (vpc.urn,)}
    provider = one(record, "prod")
    assert subnet.provider == f"{provider.urn}::{provider.id}"
    arn = f"arn:aws:ec2:us-east-2:111122223333:subnet/{subnet.id}"
    assert record.outputs == {"vpc": vpc.id, "subnet_arn": arn}
    assert list(record.unknowns()) == []


def test_secrets_are_never_in_clear() -> None:
    record = run(
        programs.secrets,
        config={"fleet:token": programs.SECRET},
        secret_keys={"fleet:token"},
        emulate=True,
    )
    assert programs.SECRET not in dump_record(record)
    assert programs.SECRET[:5] not in dump_record(record)
    assert one(record, "value").inputs["secretString"] == HIDDEN
    assert one(record, "param").outputs["value"] == HIDDEN
    assert one(record, "tagged").inputs["tags"] == {"copy": HIDDEN}
    assert one(record, "named").inputs["name"] == HIDDEN
    assert one(record, "named").outputs["arn"].endswith(":[secret]")
    made = one(record, "k8s")
    assert made.inputs["stringData"] == HIDDEN
    assert made.outputs["metadata"]["annotations"] == {"t": HIDDEN}
    assert record.outputs["token"] == HIDDEN
    assert record.outputs["nested"] == {"inside": [HIDDEN]}
    assert record.outputs["leaked"] == SECRET_TEXT


def test_pins_come_from_stack_outputs() -> None:
    record = run(programs.secrets, config={"fleet:token": "0123456789"})
    assert record.pins == ({"name": "chart", "value": "1.0"},)
    assert record.unresolved_pins == ("image/runner",)


def test_the_program_sees_real_secret_values() -> None:
    seen: list[str] = []

    def program() -> None:
        token = pulumi.Config().require_secret("token")
        made = aws.ssm.Parameter("p", type="SecureString", value=token)
        made.value.apply(seen.append)

    run(program, config={"fleet:token": "abc"}, secret_keys={"fleet:token"})
    assert seen == ["abc"]


def test_options_are_recorded_and_inherited_as_the_engine_does() -> None:
    class Kept(pulumi.ComponentResource):
        def __init__(self) -> None:
            options = pulumi.ResourceOptions(protect=True, retain_on_delete=True)
            super().__init__("test:index:Kept", "kept", None, options)
            aws.s3.Bucket(
                "child",
                opts=pulumi.ResourceOptions(
                    parent=self,
                    ignore_changes=["tags"],
                    replace_on_changes=["bucket"],
                    delete_before_replace=True,
                    replacement_trigger="v2",
                    custom_timeouts=pulumi.CustomTimeouts(create="5m"),
                    import_="existing-bucket",
                    version="7.0.0",
                ),
            )
            aws.s3.Bucket(
                "free",
                opts=pulumi.ResourceOptions(
                    parent=self,
                    protect=False,
                    additional_secret_outputs=["arn"],
                    deleted_with=self,
                ),
            )

    record = run(Kept)
    child, free = one(record, "child"), one(record, "free")
    assert (child.protect, child.retain_on_delete) == (True, True)
    assert child.ignore_changes == ("tags",)
    assert child.replace_on_changes == ("bucket",)
    assert child.delete_before_replace is True
    assert child.replacement_trigger == "v2"
    assert child.custom_timeouts == {"create": "5m"}
    assert (child.import_id, child.id) == ("existing-bucket", "existing-bucket")
    assert child.version == "7.0.0"
    assert (free.protect, free.retain_on_delete) == (False, True)
    assert free.delete_before_replace is None
    assert free.deleted_with == one(record, "kept").urn
    assert free.outputs["arn"] == HIDDEN


def test_aliases_are_resolved_and_inherited() -> None:
    class New(pulumi.ComponentResource):
        def __init__(self) -> None:
            options = pulumi.ResourceOptions(aliases=[pulumi.Alias(name="old")])
            super().__init__("test:index:New", "new", None, options)
            aws.sqs.Queue("new-queue", opts=pulumi.ResourceOptions(parent=self))

    record = run(New)
    prefix = "urn:pulumi:aws::fleet::test:index:New"
    assert one(record, "new").aliases == (f"{prefix}::old",)
    assert one(record, "new-queue").aliases == (
        f"{prefix}$aws:sqs/queue:Queue::old-queue",
    )


def test_transforms_run_from_the_resource_outwards_and_change_props_and_opts() -> None:
    calls: list[str] = []

    def transform(label: str) -> Any:
        def change(
            args: pulumi.ResourceTransformArgs,
        ) -> pulumi.ResourceTransformResult | None:
            if args.type_ != "aws:sqs/queue:Queue":
                return None
            calls.append(label)
            tags = {**args.props.get("tags", {}), label: str(len(calls))}
            return pulumi.ResourceTransformResult(
                {**args.props, "tags": tags},
                pulumi.ResourceOptions.merge(
                    args.opts, pulumi.ResourceOptions(ignore_changes=[label])
                ),
            )

        return change

    class Wrapper(pulumi.ComponentResource):
        def __init__(self, name: str, parent: Any = None) -> None:
            options = pulumi.ResourceOptions(
                parent=parent, transforms=[transform(name)]
            )
            super().__init__("test:index:Wrapper", name, None, options)

    def program() -> None:
        pulumi.runtime.register_resource_transform(transform("stack"))
        inner = Wrapper("inner", Wrapper("outer"))
        queue = aws.sqs.Queue(
            "queue",
            name="jobs",
            opts=pulumi.ResourceOptions(parent=inner, transforms=[transform("own")]),
        )
        pulumi.export("tags", queue.tags)

    record = run(program)
    assert calls == ["own", "inner", "outer", "stack"]
    queue = one(record, "queue")
    tags = {"own": "1", "inner": "2", "outer": "3", "stack": "4"}
    assert queue.inputs == {"name": "jobs", "tags": tags}
    assert queue.ignore_changes == ("own", "inner", "outer", "stack")
    assert record.outputs["tags"] == tags


def test_a_transform_may_use_another_resources_output() -> None:
    def program() -> None:
        key = aws.kms.Key("key")

        def change(
            args: pulumi.ResourceTransformArgs,
        ) -> pulumi.ResourceTransformResult | None:
            if args.type_ != "aws:sqs/queue:Queue":
                return None
            props = {**args.props, "kmsMasterKeyId": key.arn}
            return pulumi.ResourceTransformResult(props, args.opts)

        aws.sqs.Queue("queue", opts=pulumi.ResourceOptions(transforms=[change]))

    record = run(program)
    arn = one(record, "key").outputs["arn"]
    assert one(record, "queue").inputs["kmsMasterKeyId"] == arn


def test_a_transform_that_raises_names_the_resource() -> None:
    def broken(args: pulumi.ResourceTransformArgs) -> None:
        raise ValueError("no owner")

    def program() -> None:
        aws.sqs.Queue("queue", opts=pulumi.ResourceOptions(transforms=[broken]))

    with pytest.raises(RehearsalError, match="Queue::queue: a transform raised") as e:
        run(program)
    assert "no owner" in str(e.value)


def test_parameterised_packages_have_a_stable_reference() -> None:
    async def package() -> str:
        return await pulumi.runtime.register_package(
            base_provider_name="terraform-provider",
            base_provider_version="1.4.0",
            base_provider_download_url="",
            package_name="ibm",
            package_version="2.5.0",
            base64_parameter="e30=",
        )

    def program() -> None:
        for name in ("one", "two"):
            pulumi.CustomResource(
                "ibm:index/isVpc:IsVpc", name, {"name": name}, None, None, package()
            )

    record = run(program)
    references = {one(record, name).package_ref for name in ("one", "two")}
    assert references == {one(run(program), "one").package_ref}
    assert next(iter(references)).startswith("ibm@2.5.0#")
    assert one(record, "one").id != one(record, "two").id


def test_reading_a_resource_records_it_as_external() -> None:
    def program() -> None:
        bucket = aws.s3.Bucket.get("found", "shared-bucket")
        pulumi.export("id", bucket.id)
        pulumi.export("urn", bucket.urn)

    record = run(program, emulate=True)
    found = one(record, "found")
    assert (found.external, found.id) == (True, "shared-bucket")
    assert record.outputs == {"id": "shared-bucket", "urn": found.urn}
    assert record.count_by_type() == {}


def test_stack_references_are_answered_from_records() -> None:
    central = Record(
        project="fleet",
        stack="central",
        outputs={"bucket": "release", "key": HIDDEN, "deep": {"a": [HIDDEN]}},
    )

    def program() -> None:
        other = pulumi.StackReference("org/fleet/central")
        aws.sqs.Queue("queue", name=other.require_output("bucket"))
        pulumi.export("key", other.require_output("key"))
        pulumi.export("missing", other.get_output("bucket"))

    record = run(program, records={"central": central})
    assert record.references == ("central",)
    assert one(record, "queue").inputs["name"] == "release"
    assert record.outputs["key"] == HIDDEN
    assert record.outputs["missing"] == "release"
    assert one(record, "org/fleet/central").outputs["secretOutputNames"] == [
        "deep",
        "key",
    ]


def test_a_missing_record_says_how_to_make_it(tmp_path: Path) -> None:
    def program() -> None:
        pulumi.StackReference("central").get_output("bucket")

    with pytest.raises(MissingError) as caught:
        run(program, records=tmp_path)
    assert str(caught.value) == (
        "stack aws reads the outputs of stack central, which has no record yet\n"
        "  get it with: runfleet rehearse central"
    )


def test_a_damaged_record_of_another_stack_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "central").mkdir()
    (tmp_path / "central" / "record.json").write_text("{}")

    def program() -> None:
        pulumi.StackReference("central")

    with pytest.raises(InputError, match="not a record"):
        run(program, records=tmp_path)


def test_invoke_transforms_change_arguments_and_provider() -> None:
    def program() -> None:
        provider = programs.provider("444455556666")

        def change(args: pulumi.InvokeTransformArgs) -> pulumi.InvokeTransformResult:
            options = pulumi.InvokeOptions(provider=provider)
            return pulumi.InvokeTransformResult(args.args, options)

        pulumi.runtime.register_invoke_transform(change)
        pulumi.export("account", aws.get_caller_identity_output().account_id)

    assert run(program).outputs == {"account": "444455556666"}


def test_functions_that_follow_from_settings_are_answered() -> None:
    def program() -> None:
        options = pulumi.InvokeOptions(provider=programs.provider())
        pulumi.export(
            "account", aws.get_caller_identity_output(opts=options).account_id
        )

    record = run(program)
    assert record.outputs == {"account": "111122223333"}
    assert [found["tok"] for found in record.invokes] == [
        "aws:index/getCallerIdentity:getCallerIdentity"
    ]


def test_functions_that_only_the_cloud_knows_are_refused() -> None:
    with pytest.raises(RehearsalError, match="getAvailabilityZones: only the real"):
        run(aws.get_availability_zones)


def boom() -> None:
    raise ValueError("no such cell")


def boom_in_component() -> None:
    class Broken(pulumi.ComponentResource):
        def __init__(self) -> None:
            super().__init__("test:index:Broken", "broken", None, None)
            raise ValueError("no zones")

    Broken()


def boom_in_apply() -> None:
    aws.s3.Bucket("b").arn.apply(lambda arn: {}[arn])


def twice() -> None:
    aws.s3.Bucket("b")
    aws.s3.Bucket("b")


def wrong_argument() -> None:
    aws.s3.Bucket("b", colour="red")  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("program", "subject", "message"),
    [
        pytest.param(boom, "", "ValueError: no such cell (", id="raise"),
        pytest.param(
            boom_in_component, "test:index:Broken 'broken'", "no zones", id="component"
        ),
        pytest.param(boom_in_apply, "", "KeyError: 'arn:aws:s3:::b-", id="apply"),
        pytest.param(
            twice,
            "urn:pulumi:aws::fleet::aws:s3/bucket:Bucket::b",
            "already there",
            id="same-urn",
        ),
        pytest.param(wrong_argument, "Bucket 'b'", "'colour'", id="argument"),
        pytest.param(lambda: exit(3), "", "ended with exit(3)", id="exit"),
    ],
)
def test_a_failing_program_ends_with_one_message(
    program: Callable[[], None], subject: str, message: str
) -> None:
    with pytest.raises(RehearsalError) as caught:
        run(program)
    assert caught.value.subject == subject
    assert message in caught.value.reason
    assert "Traceback" not in str(caught.value)
    assert caught.value.exit_code == 1
    assert caught.value.__cause__ is not None


def test_our_own_errors_pass_through() -> None:
    def program() -> None:
        raise InputError([Problem("fleet.yaml", 3, "cells", "unknown key")])

    with pytest.raises(InputError, match=r"fleet.yaml:3: cells: unknown key"):
        run(program)


def test_a_rehearsal_leaves_the_runtime_as_it_was() -> None:
    before = (pulumi.get_stack(), get_root_resource())
    run(programs.network)
    assert (pulumi.get_stack(), get_root_resource()) == before


def test_progress_is_called_for_each_resource() -> None:
    seen: list[str] = []
    record = run(programs.network, on_resource=lambda found: seen.append(found.name))
    assert sorted(seen) == sorted(names(record))


def test_kubernetes_ids_and_metadata() -> None:
    def program() -> None:
        k8s.core.v1.Namespace("ns", metadata={"name": "runners"})
        k8s.core.v1.ConfigMap("map", metadata={"namespace": "runners"})
        k8s.core.v1.ServiceAccount("sa")
        k8s.apiextensions.CustomResource(
            "pool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata={"name": "gpu"},
        )

    record = run(program)
    made = one(record, "map").outputs["metadata"]["name"]
    assert made.startswith("map-")
    assert one(record, "ns").id == "runners"
    assert "namespace" not in one(record, "ns").outputs["metadata"]
    assert one(record, "map").id == f"runners/{made}"
    assert one(record, "sa").id.startswith("default/sa-")
    assert one(record, "pool").id == "gpu"
    assert one(record, "pool").outputs["apiVersion"] == "karpenter.sh/v1"
    assert one(record, "pool").outputs["kind"] == "NodePool"


def test_a_policy_built_from_outputs_has_no_placeholder() -> None:
    def program() -> None:
        bucket = aws.s3.Bucket("b", bucket="cache")
        document = bucket.arn.apply(lambda arn: programs.policy("s3:GetObject", arn))
        aws.iam.Policy("p", policy=document)

    statement = json.loads(one(run(program), "p").inputs["policy"])["Statement"][0]
    assert statement["Resource"] == "arn:aws:s3:::cache"
