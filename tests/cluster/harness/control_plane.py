"""A Kubernetes control plane for tests: etcd, API server, controller manager.

All three listen on 127.0.0.1 only, keep their data in one temporary folder and are
ended by their own process ids. There are no nodes and no scheduler: what is tested is
what the API server accepts, refuses, stores and answers. Authorisation is `Node,RBAC`;
admission plugins are the API server's defaults (Pod Security, validating policies,
quotas, limits, service accounts, priorities) and `NodeRestriction`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.harness.binaries import Binaries
from cluster.harness.certificates import Certificates, Pair, make_certificates
from cluster.harness.client import Api

START_SECONDS = 90.0
"""How long a server may take to answer; five seconds are usual."""


class StartError(Exception):
    """A server did not start; the message ends with the last lines of its log."""


@contextmanager
def control_plane(
    binaries: Binaries, failed: Callable[[], bool] = lambda: False
) -> Iterator[Api]:
    """Run a control plane and give a client with all rights.

    Args:
        binaries: The programs.
        failed: Asked at the end; the folder with the logs is kept when it says so.

    Raises:
        StartError: A server did not start; the logs are kept.
    """
    folder = Path(tempfile.mkdtemp(prefix="runfleet-cluster-"))
    servers: list[_Server] = []
    keep = True
    try:
        files = make_certificates(folder)
        with _Api(folder, binaries, files, servers).start() as api:
            yield api
        keep = failed()
    finally:
        for server in reversed(servers):
            server.stop()
        if keep:
            print(f"the logs of the control plane are in {folder}")
        else:
            shutil.rmtree(folder)


class _Server:
    """One process and its log."""

    def __init__(self, name: str, folder: Path, command: list[str]) -> None:
        self._log = folder / f"{name}.log"
        self.name = name
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, ready: Callable[[], bool]) -> None:
        """Wait until the server answers."""
        pause = threading.Event()
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise StartError(f"{self.name} did not start:\n{self._tail()}")
            pause.wait(0.1)

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _tail(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-15:])


class _Api:
    """Starts the three servers in order."""

    def __init__(
        self,
        folder: Path,
        binaries: Binaries,
        files: Certificates,
        servers: list[_Server],
    ) -> None:
        self._folder = folder
        self._binaries = binaries
        self._files = files
        self._servers = servers

    def start(self) -> Api:
        etcd = self._etcd()
        port = _free_port()
        address = f"https://127.0.0.1:{port}"
        files = self._files
        api = Api(address, files.authority, files.tests)
        server = self._run("kube-apiserver", self._apiserver(port, etcd))
        server.wait(api.ready)
        manager_port = _free_port()
        manager = self._run(
            "kube-controller-manager", self._manager(address, manager_port)
        )
        # The account that it makes in each namespace says that it works.
        manager.wait(lambda: api.exists("v1", "ServiceAccount", "default", "default"))
        return api

    def _run(self, name: str, command: list[str]) -> _Server:
        server = _Server(name, self._folder, command)
        self._servers.append(server)
        return server

    def _etcd(self) -> str:
        client, peer = _free_port(), _free_port()
        address = f"http://127.0.0.1:{client}"
        own = f"http://127.0.0.1:{peer}"
        flags = {
            "name": "tests",
            "data-dir": str(self._folder / "etcd"),
            "listen-client-urls": address,
            "advertise-client-urls": address,
            "listen-peer-urls": own,
            "initial-advertise-peer-urls": own,
            "initial-cluster": f"tests={own}",
        }
        command = [str(self._binaries.etcd), *_flags(flags)]
        if _knows(self._binaries.etcd, "unsafe-no-fsync"):
            command.append("--unsafe-no-fsync")
        self._run("etcd", command).wait(lambda: _listens(client))
        return address

    def _apiserver(self, port: int, etcd: str) -> list[str]:
        files = self._files
        flags = {
            "etcd-servers": etcd,
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": str(port),
            "endpoint-reconciler-type": "none",
            "cert-dir": str(self._folder),
            "tls-cert-file": str(files.server.certificate),
            "tls-private-key-file": str(files.server.key),
            "client-ca-file": str(files.authority),
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": str(files.account_public_key),
            "service-account-signing-key-file": str(files.account_key),
            "service-cluster-ip-range": "10.96.0.0/16",
            "authorization-mode": "Node,RBAC",
            # As managed clusters have it: pods with devices bear the devices' taint.
            "enable-admission-plugins": "NodeRestriction,ExtendedResourceToleration",
            # Fields of features that are off would be dropped before any rule sees
            # them; a later Kubernetes has these on.
            "feature-gates": "ImageVolume=true,ClusterTrustBundle=true,"
            "ClusterTrustBundleProjection=true",
            # As managed clusters have it: refusing privileged pods is for policies.
            "allow-privileged": "true",
            "profiling": "false",
        }
        return [str(self._binaries.apiserver), *_flags(flags)]

    def _manager(self, address: str, port: int) -> list[str]:
        files = self._files
        config = self._folder / "controller-manager.kubeconfig"
        config.write_text(
            _kubeconfig(address, files.authority, files.controller_manager),
            encoding="utf-8",
        )
        flags = {
            "kubeconfig": str(config),
            "bind-address": "127.0.0.1",
            "secure-port": str(port),
            "cert-dir": str(self._folder),
            "leader-elect": "false",
            "use-service-account-credentials": "true",
            "service-account-private-key-file": str(files.account_key),
            "root-ca-file": str(files.authority),
            "profiling": "false",
        }
        return [str(self._binaries.controller_manager), *_flags(flags)]


def _flags(values: dict[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]


def _knows(program: Path, flag: str) -> bool:
    asked = subprocess.run([program, "--help"], capture_output=True, text=True)
    return f"--{flag}" in asked.stdout + asked.stderr


def _kubeconfig(address: str, authority: Path, pair: Pair) -> str:
    """Return a kubeconfig as JSON, which is YAML too."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "clusters": [
                {
                    "name": "tests",
                    "cluster": {
                        "server": address,
                        "certificate-authority": os.fspath(authority),
                    },
                }
            ],
            "users": [
                {
                    "name": "tests",
                    "user": {
                        "client-certificate": os.fspath(pair.certificate),
                        "client-key": os.fspath(pair.key),
                    },
                }
            ],
            "contexts": [
                {"name": "tests", "context": {"cluster": "tests", "user": "tests"}}
            ],
        }
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
