"""Find the three programs of a Kubernetes control plane, or build them once.

The tests need the real `kube-apiserver` and `kube-controller-manager`, and `etcd`
below them. They are looked for in this order:

1. the folder that `KUBEBUILDER_ASSETS` names (the convention of setup-envtest);
2. `PATH`, where only version 1.34 or newer is taken;
3. the cache `~/.cache/runfleet/kubernetes-<version>` (`XDG_CACHE_HOME` is obeyed);
4. `go build` of the published Go modules into that cache: about three minutes on
   two processors, once for each version.

`go install k8s.io/kubernetes/cmd/kube-apiserver@<version>` is refused by Go because
that module replaces its staging modules by folders of its own tree. So a small
module is made in a temporary folder that requires `k8s.io/kubernetes v1.X` and
replaces each `k8s.io/<staging>` of its `go.mod` by the same module at `v0.X`, which
the Kubernetes project publishes from the same commit (kubernetes/publishing-bot).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

VERSION = "1.34.4"
"""Version of the Go module `k8s.io/kubernetes` that is built when none is found."""

OLDEST = (1, 34)
"""Oldest version whose answers the tests trust."""

GO_FOLDERS = ("/usr/local/go/bin",)
"""Where Go's own installer puts `go`, looked at after PATH."""

_PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
}


class Unavailable(Exception):
    """No control plane can be had here; the message is one line that says why."""


@dataclass(frozen=True)
class Binaries:
    """Where the programs are.

    Attributes:
        etcd: The etcd server.
        apiserver: The Kubernetes API server.
        controller_manager: The Kubernetes controller manager.
    """

    etcd: Path
    apiserver: Path
    controller_manager: Path


def find_binaries(tell: Callable[[str], None] = lambda text: None) -> Binaries:
    """Return the programs, built when they are not here yet.

    Args:
        tell: Told in one line when they must be built first.

    Raises:
        Unavailable: They are not here and cannot be built.
    """
    cache = cache_folder()
    apiserver = _found("kube-apiserver")
    manager = _found("kube-controller-manager")
    etcd = _found("etcd")
    missing = [
        name
        for name, found in zip(_PROGRAMS, (etcd, apiserver, manager), strict=True)
        if found is None
    ]
    if missing:
        if _go_tool() is None:
            raise Unavailable(
                f"no {', '.join(missing)} in KUBEBUILDER_ASSETS or PATH "
                "(Kubernetes 1.34 or newer), and no go to build them with"
            )
        tell(f"building {', '.join(missing)} {VERSION} into {cache}, once")
        _build(cache, missing)
    return Binaries(
        etcd or cache / "etcd",
        apiserver or cache / "kube-apiserver",
        manager or cache / "kube-controller-manager",
    )


def module_folder(module: str, version: str) -> Path:
    """Return the folder of a Go module's source, fetched when it is not here yet.

    Raises:
        Unavailable: There is no `go`, or it cannot fetch the module.
    """
    with tempfile.TemporaryDirectory(prefix="runfleet-module-") as folder:
        asked = f"{module}@{version}"
        found = _go(Path(folder), "mod", "download", "-json", asked)
    return Path(json.loads(found)["Dir"])


def stop(reason: str) -> NoReturn:
    """Skip a test that cannot be made here; fail it where `CI` is `true`.

    A check that was never made must not look green where it counts.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def cache_folder() -> Path:
    """Return the folder that keeps what was built."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "runfleet" / f"kubernetes-{VERSION}"


def _found(name: str) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    places = [Path(assets) / name] if assets else []
    if on_path := shutil.which(name):
        places.append(Path(on_path))
    places.append(cache_folder() / name)
    return next((p for p in places if p.is_file() and _new_enough(p)), None)


def _new_enough(program: Path) -> bool:
    if program.name == "etcd":
        return True
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=60
        ).stdout
    except OSError:
        return False
    version = re.search(r"v(\d+)\.(\d+)\.", answer)
    return bool(version) and tuple(map(int, version.groups())) >= OLDEST


def _build(cache: Path, programs: Sequence[str]) -> None:
    """Build programs, each with the versions that Kubernetes itself requires."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="runfleet-kubernetes-") as folder:
        work = Path(folder)
        (work / "go.mod").write_text(_go_mod(work), encoding="utf-8")
        for name in programs:
            flags = ["-trimpath", "-ldflags", _stamp(), "-o", str(work / name)]
            _go(work, "build", *flags, _PROGRAMS[name])
            _install(work / name, cache / name)


def _go_tool() -> str | None:
    folders = [os.environ.get("PATH", ""), *GO_FOLDERS]
    return shutil.which("go", path=os.pathsep.join(folders))


def _install(built: Path, target: Path) -> None:
    """Put a program into the cache so that no half-written one is ever seen."""
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copy2(built, partial)
    partial.replace(target)


def _go_mod(work: Path) -> str:
    """Return a module that can build Kubernetes' commands."""
    asked = f"k8s.io/kubernetes@v{VERSION}"
    described = json.loads(_go(work, "mod", "download", "-json", asked))
    listed = json.loads(_go(work, "mod", "edit", "-json", described["GoMod"]))
    minor = VERSION.partition(".")[2]
    staging = sorted(
        needed["Path"]
        for needed in listed["Require"]
        if needed["Version"] == "v0.0.0" and needed["Path"].startswith("k8s.io/")
    )
    replaced = "".join(f"\t{path} => {path} v0.{minor}\n" for path in staging)
    return (
        "module runfleet.test/kubernetes\n\n"
        f"go {listed['Go']}\n\n"
        f"require k8s.io/kubernetes v{VERSION}\n\n"
        f"replace (\n{replaced})\n"
    )


def _stamp() -> str:
    """Return the linker flags that make the programs say which version they are."""
    major, minor, _ = VERSION.split(".")
    values = {
        "gitVersion": f"v{VERSION}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "archive",
    }
    where = "k8s.io/component-base/version"
    flags = [f"-X {where}.{name}={value}" for name, value in values.items()]
    return " ".join(["-s", "-w", *flags])


def _go(folder: Path, *words: str) -> str:
    go = _go_tool()
    if go is None:
        raise Unavailable(f"no go for {words[-1]}")
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    environment |= {"GOWORK": "off"}
    done = subprocess.run(
        [go, *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"go {' '.join([words[0], words[-1]])} failed: {last}")
    return done.stdout
