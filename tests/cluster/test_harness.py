"""The harness itself, without an API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.harness import binaries
from cluster.harness.binaries import Unavailable, find_binaries, stop
from cluster.harness.recorded import definitions, lost, object_of, waves
from cluster.harness.reviews import text
from runfleet.rehearsal.record import Record, ResourceRecord
from runfleet.rehearsal.values import UNKNOWN, secret


def _resource(name: str, kind: str, *needs: str, **spec: Any) -> ResourceRecord:
    return ResourceRecord(
        urn=f"urn:{name}",
        type=f"kubernetes:example.com/v1:{kind}",
        name=name,
        inputs={
            "apiVersion": "example.com/v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        },
        dependencies=tuple(f"urn:{need}" for need in needs),
    )


def test_schema_keywords_get_the_api_servers_spelling() -> None:
    found = object_of(
        _resource(
            "a",
            "CustomResourceDefinition",
            x_kubernetes_preserve_unknown_fields=True,
            items=[{"x_kubernetes_list_type": "map"}],
            some_name=2.0,
        )
    )
    assert found["spec"] == {
        "x-kubernetes-preserve-unknown-fields": True,
        "items": [{"x-kubernetes-list-type": "map"}],
        "some_name": 2,
    }


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (secret("[secret]"), "a secret is in a Kubernetes object"),
        (UNKNOWN, "not known in a rehearsal"),
        (f"arn:{UNKNOWN}", "not known in a rehearsal"),
    ],
)
def test_what_cannot_be_applied_is_said(value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        object_of(_resource("a", "Thing", key=[value]))


def test_objects_come_in_the_order_of_their_dependencies() -> None:
    chart = ResourceRecord(
        urn="urn:chart",
        type="kubernetes:helm.sh/v3:Release",
        name="chart",
        inputs={"chart": "x"},
        dependencies=("urn:space",),
    )
    bucket = ResourceRecord(
        urn="urn:bucket", type="aws:s3/bucket:Bucket", name="bucket"
    )
    record = Record(
        project="p",
        stack="s",
        resources=(
            _resource("last", "Thing", "chart", "bucket"),
            chart,
            bucket,
            _resource("space", "Namespace"),
            _resource("alone", "Thing", "bucket"),
        ),
    )
    names = [[one.name for one in wave] for wave in waves(record)]
    assert names == [["space", "alone"], ["last"]]


def test_what_is_not_stored_as_written_is_found() -> None:
    wanted = {
        "spec": {
            "gone": 1,
            "off": False,
            "hard": {"cpu": "40000", "memory": "1Gi"},
            "list": [1, 2],
            "name": "40000",
        }
    }
    stored = {
        "spec": {
            "hard": {"cpu": "40k", "memory": "2Gi"},
            "list": [1],
            "name": "40k",
            "default": True,
        }
    }
    assert list(lost(wanted, stored)) == [
        "spec.gone: 1 is not stored",
        "spec.off: False is not stored",
        "spec.hard.cpu: '40000' became '40k'",
        "spec.hard.memory: '1Gi' became '2Gi'",
        "spec.list: 2 items became 1",
        "spec.name: '40000' became '40k'",
    ]


def test_definitions_are_complete() -> None:
    names = sorted(found["metadata"]["name"] for found in definitions())
    assert names == [
        "autoscalinglisteners.actions.github.com",
        "autoscalingrunnersets.actions.github.com",
        "clustersecretstores.external-secrets.io",
        "ephemeralrunners.actions.github.com",
        "ephemeralrunnersets.actions.github.com",
        "externalsecrets.external-secrets.io",
    ]
    for found in definitions():
        spec = found["spec"]
        named = f"{spec['names']['plural']}.{spec['group']}"
        assert found["metadata"]["name"] == named


def _program(folder: Path, name: str, answer: str) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{answer}'\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave no program in PATH, in the cache or in the assets."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(binaries, "GO_FOLDERS", ())


def test_programs_of_the_assets_are_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _bare(monkeypatch, tmp_path)
    assets = tmp_path / "assets"
    for name, answer in (
        ("etcd", "etcd Version: 3.4.23"),
        ("kube-apiserver", "Kubernetes v1.34.0"),
        ("kube-controller-manager", "Kubernetes v1.40.1"),
    ):
        _program(assets, name, answer)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    found = find_binaries()
    assert found.etcd == assets / "etcd"
    assert found.apiserver == assets / "kube-apiserver"
    assert found.controller_manager == assets / "kube-controller-manager"


def test_an_old_api_server_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _bare(monkeypatch, tmp_path)
    _program(tmp_path / "empty", "kube-apiserver", "Kubernetes v1.33.9")
    with pytest.raises(Unavailable, match=r"^no etcd, kube-apiserver, .* no go to"):
        find_binaries()


def test_a_failing_build_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _bare(monkeypatch, tmp_path)
    go = _program(tmp_path / "empty", "go", "")
    go.write_text("#!/bin/sh\necho 'one\nlast: no network' >&2\nexit 1\n")
    told: list[str] = []
    with pytest.raises(Unavailable) as missing:
        find_binaries(told.append)
    asked = f"k8s.io/kubernetes@v{binaries.VERSION}"
    assert str(missing.value) == f"go mod {asked} failed: last: no network"
    assert told == [
        "building etcd, kube-apiserver, kube-controller-manager "
        f"{binaries.VERSION} into {binaries.cache_folder()}, once"
    ]
    assert not list((tmp_path / "cache").rglob("kube-*"))


def test_a_missing_api_server_skips_but_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^no API server: why$"):
        stop("no API server: why")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"^no API server: why$"):
        stop("no API server: why")


def test_rights_are_written_shortly() -> None:
    rights = {("secrets", "list"), ("pods", "get"), ("secrets", "get")}
    assert text(rights) == "`pods`: get; `secrets`: get, list"
    assert text(()) == "nothing"
