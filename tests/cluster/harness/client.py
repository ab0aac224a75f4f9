"""A small client of the Kubernetes API that keeps what a test wants to see.

The published clients hide the answers' headers (the API server's warnings) and
impersonation behind layers. This one speaks plain HTTPS with a client certificate:
server-side apply with strict field checks, dry runs, reading, reviews.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from cluster.harness.certificates import Pair

Object = dict[str, Any]

MANAGER = "runfleet-tests"
"""Name under which the tests own fields in server-side apply."""


class Refused(Exception):
    """The API server refused a request.

    Attributes:
        code: HTTP status.
        reason: Machine-readable reason, such as ``Forbidden``.
        message: What the API server says.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message


@dataclass(frozen=True)
class Account:
    """A service account.

    Attributes:
        namespace: Its namespace.
        name: Its name.
    """

    namespace: str
    name: str

    @property
    def user(self) -> str:
        """The user name that the API server knows it by."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the API server puts it into."""
        return (
            "system:serviceaccounts",
            f"system:serviceaccounts:{self.namespace}",
            "system:authenticated",
        )


@dataclass(frozen=True)
class Answer:
    """What the API server stored or would store.

    Attributes:
        object: The object.
        warnings: What the API server warns of.
        created: Whether the object is new.
    """

    object: Object
    warnings: tuple[str, ...]
    created: bool

    @property
    def version(self) -> str:
        """The object's resource version."""
        return str(self.object["metadata"]["resourceVersion"])


class Api:
    """A client with one connection for each thread.

    Attributes:
        counts: How many objects were applied, reviews asked, pods taken and refused.
    """

    def __init__(self, address: str, authority: Path, pair: Pair) -> None:
        parts = urlsplit(address)
        self._host, self._port = str(parts.hostname), parts.port
        self._tls = ssl.create_default_context(cafile=str(authority))
        self._tls.load_cert_chain(pair.certificate, pair.key)
        self._local = threading.local()
        self._connections: list[HTTPSConnection] = []
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()

    def ready(self) -> bool:
        """Say whether the API server serves."""
        try:
            self._send("GET", "/readyz")
        except (OSError, Refused):
            return False
        return True

    def apply(self, wanted: Mapping[str, Any]) -> Answer:
        """Apply an object on the server, with strict field checks.

        Raises:
            Refused: The API server does not take it.
        """
        self._count("applied")
        query = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
        return self._send(
            "PATCH",
            f"{self._path(wanted)}/{quote(wanted['metadata']['name'])}",
            wanted,
            query,
            content="application/apply-patch+yaml",
        )

    def create(
        self,
        wanted: Mapping[str, Any],
        account: Account | None = None,
        dry_run: bool = True,
    ) -> Answer:
        """Create an object, as a dry run when not told otherwise.

        Args:
            wanted: The object.
            account: Service account to do it as; the tests' own user when None.
            dry_run: Whether only to go through all checks.

        Raises:
            Refused: The API server does not take it.
        """
        query = {"fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        path = self._path(wanted)
        if wanted["kind"] != "Pod":
            return self._send("POST", path, wanted, query, account)
        try:
            answer = self._send("POST", path, wanted, query, account)
        except Refused:
            self._count("pods refused")
            raise
        self._count("pods taken")
        return answer

    def subresource(
        self,
        verb: str,
        wanted: Mapping[str, Any],
        name: str,
        account: Account | None = None,
    ) -> Answer:
        """Replace or create (``PUT``, ``POST``) a subresource, as a dry run."""
        path = f"{self._path(wanted)}/{quote(wanted['metadata']['name'])}/{name}"
        return self._send(verb, path, wanted, {"dryRun": "All"}, account)

    def delete(self, wanted: Mapping[str, Any]) -> None:
        """Delete an object at once."""
        path = f"{self._path(wanted)}/{quote(wanted['metadata']['name'])}"
        self._send("DELETE", path, query={"gracePeriodSeconds": "0"})

    def list(self, version: str, kind: str) -> list[Object]:
        """Return all objects of a kind, in all namespaces."""
        plural, _ = self._kind(version, kind)
        answer = self._send("GET", f"{_root(version)}/{plural}")
        found: list[Object] = answer.object["items"]
        return found

    def exists(self, version: str, kind: str, namespace: str, name: str) -> bool:
        """Say whether an object exists."""
        wanted = {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"namespace": namespace, "name": name},
        }
        try:
            self._send("GET", f"{self._path(wanted)}/{quote(name)}")
        except Refused as refused:
            if refused.code == 404:
                return False
            raise
        return True

    def post_as(
        self, account: Account, version: str, kind: str, spec: Mapping[str, Any]
    ) -> Object:
        """Post a review as an account and return the answer."""
        self._count("reviews")
        plural = f"{kind.lower()}s"
        body = {"apiVersion": version, "kind": kind, "spec": spec}
        path = f"{_root(version)}/{plural}"
        return self._send("POST", path, body, account=account).object

    def review(self, account: Account, **attributes: str) -> bool:
        """Ask whether an account may do something (SubjectAccessReview).

        Args:
            account: The account.
            attributes: ``verb``, ``group``, ``resource``, ``subresource``,
                ``namespace``, ``name``; or ``verb`` and ``path`` for a path that is
                no resource.
        """
        self._count("reviews")
        where = (
            "nonResourceAttributes" if "path" in attributes else "resourceAttributes"
        )
        answer = self._send(
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "user": account.user,
                    "groups": list(account.groups),
                    where: attributes,
                },
            },
        )
        status = answer.object["status"]
        if error := status.get("evaluationError"):
            raise AssertionError(f"{account.user} {attributes}: {error}")
        return bool(status["allowed"])

    def kinds_of(self, version: str, new: bool = False) -> set[str]:
        """Return the kinds of an API version, asked again when `new`.

        A version that the API server does not serve has none.
        """
        if new:
            self._kinds.pop(version, None)
        try:
            return set(self._served(version))
        except Refused as refused:
            if refused.code == 404:
                return set()
            raise

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def _path(self, wanted: Mapping[str, Any]) -> str:
        plural, namespaced = self._kind(wanted["apiVersion"], wanted["kind"])
        where = ""
        if namespaced:
            where = f"/namespaces/{quote(wanted['metadata']['namespace'])}"
        elif "namespace" in wanted["metadata"]:
            raise AssertionError(f"{wanted['kind']} is not in a namespace")
        return f"{_root(wanted['apiVersion'])}{where}/{plural}"

    def _kind(self, version: str, kind: str) -> tuple[str, bool]:
        try:
            return self._served(version)[kind]
        except KeyError:
            raise Refused(404, "NotFound", f"no kind {kind} in {version}") from None

    def _served(self, version: str) -> dict[str, tuple[str, bool]]:
        if version not in self._kinds:
            found = self._send("GET", _root(version)).object["resources"]
            self._kinds[version] = {
                entry["kind"]: (entry["name"], entry["namespaced"])
                for entry in found
                if "/" not in entry["name"]
            }
        return self._kinds[version]

    def _send(
        self,
        verb: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        account: Account | None = None,
        content: str = "application/json",
    ) -> Answer:
        headers = [("Accept", "application/json")]
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers += [("Content-Type", content), ("Content-Length", str(len(data)))]
        if account is not None:
            headers.append(("Impersonate-User", account.user))
            headers += [("Impersonate-Group", group) for group in account.groups]
        target = f"{path}?{urlencode(query)}" if query else path
        status, warnings, received = self._exchange(verb, target, headers, data)
        if status >= 400:
            raise _refusal(status, received)
        found = json.loads(received) if received.startswith(b"{") else {}
        return Answer(found, warnings, status == 201)

    def _exchange(
        self, verb: str, target: str, headers: list[tuple[str, str]], data: bytes | None
    ) -> tuple[int, tuple[str, ...], bytes]:
        """Send a request; return the status, the warnings and the body.

        A connection that the API server closed while nobody used it is opened again.
        """
        connection = self._connection()
        used = connection.sock is not None
        try:
            return self._once(connection, verb, target, headers, data)
        except ConnectionError:
            if not used:
                raise
            return self._once(connection, verb, target, headers, data)

    def _once(
        self,
        connection: HTTPSConnection,
        verb: str,
        target: str,
        headers: list[tuple[str, str]],
        data: bytes | None,
    ) -> tuple[int, tuple[str, ...], bytes]:
        try:
            connection.putrequest(verb, target, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders(data)
            response = connection.getresponse()
            warned = response.headers.get_all("Warning", [])
            return response.status, tuple(map(_warning, warned)), response.read()
        except BaseException:
            connection.close()
            raise

    def _connection(self) -> HTTPSConnection:
        connection: HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = HTTPSConnection(
                self._host, self._port, timeout=60, context=self._tls
            )
            self._local.connection = connection
            self._connections.append(connection)
        return connection


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _refusal(code: int, received: bytes) -> Refused:
    try:
        status = json.loads(received)
    except ValueError:
        return Refused(code, "", received.decode(errors="replace"))
    return Refused(code, status.get("reason", ""), status.get("message", ""))


def _warning(header: str) -> str:
    """Return the text of a Warning header (RFC 7234, 5.5)."""
    quoted = re.fullmatch(r'\d{3} \S+ "(.*)"', header, re.DOTALL)
    return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else header
