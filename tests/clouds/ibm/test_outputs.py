"""Derived ids and outputs of a rehearsal: the forms that IBM Cloud gives them."""

from __future__ import annotations

import re

from clouds.ibm.fleets import ACCOUNT, of_kind, one
from clouds.ibm.schema import schema
from runfleet.rehearsal.outputs import Outputs
from runfleet.rehearsal.providers import ibm
from runfleet.rehearsal.providers.subject import Subject
from runfleet.rehearsal.record import Record

UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
OWNER = f"a/{ACCOUNT}"
CRN = "crn:v1:bluemix:public"

FORMS = {
    "IsVpc": f"r006-{UUID}",
    "IsSubnet": f"r006-{UUID}",
    "IsSecurityGroupRule": rf"r006-{UUID}\.r006-{UUID}",
    "IsVpcAddressPrefix": f"r006-{UUID}/r006-{UUID}",
    "ContainerVpcCluster": "c[a-z0-9]{19}",
    "ContainerVpcWorkerPool": "c[a-z0-9]{19}/c[a-z0-9]{19}-[0-9a-f]{7}",
    "ContainerAddons": "c[a-z0-9]{19}",
    "IamTrustedProfile": f"Profile-{UUID}",
    "IamTrustedProfileLink": f"Profile-{UUID}/link-{UUID}",
    "IamTrustedProfilePolicy": f"iam-Profile-{UUID}/{UUID}",
    "IamAuthorizationPolicy": UUID,
    "KmsKey": f"{CRN}:kms:us-south:{OWNER}:{UUID}:key:{UUID}",
    "CosBucket": f"{CRN}:cloud-object-storage:global:{OWNER}:{UUID}:bucket:[a-z0-9-]+"
    ":meta:rl:us-south:private",
}


def test_ids_have_the_form_of_the_provider(cell: Record) -> None:
    for kind, form in FORMS.items():
        for resource in of_kind(cell, kind):
            assert re.fullmatch(form, resource.id), (kind, resource.id)


def test_ids_are_all_different(cell: Record) -> None:
    found = [
        resource.id
        for resource in cell.resources
        if resource.type.startswith("ibm:")
        and not resource.type.endswith((":ResourceTag", ":ContainerAddons"))
    ]
    assert len(found) == len(set(found))


def test_outputs_are_those_of_the_provider(cell: Record) -> None:
    for resource in cell.resources:
        if resource.type.startswith("ibm:"):
            known = schema()[resource.type]
            derived = set(resource.outputs) - set(resource.inputs)
            assert derived <= {*known["outputs"], *known["inputs"]}, resource.type


def test_crns_name_account_and_region(cell: Record) -> None:
    cluster = one(cell, "ibm-cluster-iks")
    assert cluster.outputs["crn"] == (
        f"{CRN}:containers-kubernetes:us-south:{OWNER}:{cluster.id}::"
    )
    guid = one(cell, "ibm-stores-objects").outputs["guid"]
    bucket = one(cell, "ibm-stores-cache")
    assert bucket.outputs["crn"] == (
        f"{CRN}:cloud-object-storage:global:{OWNER}:{guid}:bucket:"
        f"{bucket.inputs['bucketName']}"
    )


def test_without_a_provider_the_defaults() -> None:
    subject = Subject("urn", "ibm:index/isVpc:IsVpc", "vpc", {}, {})
    derived = Outputs().derive(subject)
    assert re.fullmatch(f"r006-{UUID}", derived.id)
    assert f":us-south:a/{'0' * 32}:" in derived.outputs["crn"]
    assert ibm.invoke("ibm:index/getIsVpc:getIsVpc", {}, {}) is None


def test_an_id_that_is_read_stays() -> None:
    subject = Subject("urn", "ibm:index/isVpc:IsVpc", "vpc", {}, {}, "r006-mine")
    derived = ibm.derive(subject)
    assert derived.id == "r006-mine"
    assert derived.outputs["crn"].endswith(":vpc:r006-mine")
