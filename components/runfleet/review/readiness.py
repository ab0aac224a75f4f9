"""What a real deployment needs and this machine lacks (``runfleet doctor``).

Each check looks at one thing, says what it found, and names the one line that gets
what is missing. Nothing is changed and nothing outside this machine is called.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from runfleet.catalogue.pins import PINS_NAME, load_pins
from runfleet.catalogue.read import read_fleet
from runfleet.errors import RunfleetError
from runfleet.placement.lock import LOCK_NAME, read_lock
from runfleet.spec.cells import Provider
from runfleet.spec.fleet import Fleet

PULUMI_MINIMUM = (3, 200)
"""Oldest CLI (major, minor) that is known to run this program's features."""

SECRETS_PROVIDER = (
    "pulumi stack change-secrets-provider 'awskms://<key>?region=<region>' -s <stack>"
)

SDK_MODULES: Mapping[Provider, str] = {
    Provider.AWS: "pulumi_aws",
    Provider.GCP: "pulumi_gcp",
    Provider.AZURE: "pulumi_azure_native",
}

PLUGINS: Mapping[Provider, str] = {
    Provider.AWS: "aws",
    Provider.GCP: "gcp",
    Provider.AZURE: "azure-native",
    Provider.IBM: "terraform-provider",
}

CREDENTIALS: Mapping[Provider, tuple[tuple[str, ...], str, str]] = {
    Provider.AWS: (
        ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
         "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        "~/.aws/credentials",
        "aws sso login, or run in the `up` workflow, which assumes the deploy role",
    ),
    Provider.GCP: (
        ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN"),
        "~/.config/gcloud/application_default_credentials.json",
        "gcloud auth application-default login",
    ),
    Provider.AZURE: (
        ("ARM_CLIENT_ID", "AZURE_CLIENT_ID"),
        "~/.azure/azureProfile.json",
        "az login",
    ),
    Provider.IBM: (
        ("IC_API_KEY", "IBMCLOUD_API_KEY", "IC_IAM_TOKEN"),
        "~/.bluemix/config.json",
        "ibmcloud login --sso",
    ),
}  # fmt: skip
"""Where each cloud's tools look for credentials: variables, a file, how to get."""


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check.

    Attributes:
        name: What was looked at.
        ok: Whether it is there.
        found: What was found, or what is missing.
        remedy: The one line that gets it; empty when it is there.
        needed_for: ``rehearse``, ``up`` or both.
    """

    name: str
    ok: bool
    found: str
    remedy: str = ""
    needed_for: str = "up"

    def as_dict(self) -> dict[str, object]:
        """Return the outcome as plain data for ``--json``."""
        return {
            "name": self.name,
            "ok": self.ok,
            "found": self.found,
            "remedy": self.remedy,
            "needed_for": self.needed_for,
        }


def check_readiness(
    root: Path, fleet_path: Path, environment: Mapping[str, str] | None = None
) -> list[CheckResult]:
    """Check all that a real deployment of a fleet needs.

    Args:
        root: Folder of ``Pulumi.yaml``.
        fleet_path: The fleet file.
        environment: Environment variables; default: the process's own.
    """
    env = os.environ if environment is None else environment
    results = [_python()]
    try:
        fleet = read_fleet(fleet_path).fleet
    except RunfleetError as error:
        results.append(
            CheckResult(
                "fleet file",
                False,
                str(error).splitlines()[0],
                f"runfleet check {fleet_path}",
                "rehearse",
            )
        )
        return results
    results.append(CheckResult("fleet file", True, str(fleet_path), "", "rehearse"))
    results.append(_lock(fleet_path, fleet))
    results += _pins(fleet_path, fleet)
    results += _clouds(fleet, env)
    results += _pulumi(root, fleet, env)
    results += _github(env)
    return results


def _python() -> CheckResult:
    version = ".".join(str(part) for part in sys.version_info[:3])
    ok = sys.version_info >= (3, 11)
    return CheckResult(
        "Python 3.11 or newer",
        ok,
        version,
        "" if ok else "install Python 3.11 or newer",
        "rehearse",
    )


def _lock(fleet_path: Path, fleet: Fleet) -> CheckResult:
    lock = fleet_path.with_name(LOCK_NAME)
    try:
        read_lock(lock, fleet)
    except RunfleetError as error:
        return CheckResult(
            "placement lock",
            False,
            str(error).splitlines()[0],
            f"runfleet place {fleet_path} --write",
            "rehearse",
        )
    return CheckResult("placement lock", True, str(lock), "", "rehearse")


def _pins(fleet_path: Path, fleet: Fleet) -> Iterator[CheckResult]:
    pins = load_pins(fleet_path.with_name(PINS_NAME))
    providers = {str(cell.provider) for cell in fleet.cells.values()}
    names = sorted({n for provider in providers for n in pins.unresolved(provider)})
    yield CheckResult(
        "pins resolved",
        not names,
        f"{len(names)} unresolved: {', '.join(names)}" if names else "all",
        f"runfleet pins refresh --file {fleet_path.with_name(PINS_NAME)}"
        if names
        else "",
    )


def _clouds(fleet: Fleet, env: Mapping[str, str]) -> Iterator[CheckResult]:
    providers = {cell.provider for cell in fleet.cells.values()}
    if fleet.central is not None:
        providers.add(fleet.central.provider)
    for provider in sorted(providers - {Provider.OWN}):
        module = SDK_MODULES.get(provider)
        if module is not None:
            ok = importlib.util.find_spec(module) is not None
            yield CheckResult(
                f"{provider} SDK",
                ok,
                module if ok else f"{module} is not installed",
                "" if ok else f"pip install 'runfleet[{provider}]'",
                "rehearse",
            )
        variables, file, remedy = CREDENTIALS[provider]
        named = next((name for name in variables if env.get(name)), "")
        path = Path(file.replace("~", env.get("HOME", "~"), 1))
        found = named or (str(path) if path.exists() else "")
        yield CheckResult(
            f"{provider} credentials",
            bool(found),
            found or f"none of {', '.join(variables)}, no {file}",
            "" if found else remedy,
        )
    if Provider.AWS in providers:
        yield _tool("aws", "AWS CLI, for the cluster's short-lived credentials",
                    "pip install awscli", env)  # fmt: skip
    yield _tool("kubectl", "kubectl", "install kubectl 1.34 or newer", env)


def _tool(command: str, name: str, remedy: str, env: Mapping[str, str]) -> CheckResult:
    path = shutil.which(command, path=env.get("PATH"))
    return CheckResult(
        name, path is not None, path or f"no {command} on PATH", "" if path else remedy
    )


def _pulumi(root: Path, fleet: Fleet, env: Mapping[str, str]) -> Iterator[CheckResult]:
    path = shutil.which("pulumi", path=env.get("PATH"))
    version = _pulumi_version(path) if path else ""
    numbers = tuple(
        int(part) for part in version.lstrip("v").split(".")[:2] if part.isdigit()
    )
    minimum = ".".join(str(part) for part in PULUMI_MINIMUM)
    ok = numbers >= PULUMI_MINIMUM
    yield CheckResult(
        f"Pulumi CLI {minimum} or newer",
        ok,
        version or "no pulumi on PATH",
        "" if ok else "curl -fsSL https://get.pulumi.com | sh",
    )
    home = Path(env.get("PULUMI_HOME") or Path(env.get("HOME", "~")) / ".pulumi")
    installed = [entry.name for entry in home.glob("plugins/resource-*")]
    wanted = {"kubernetes", "github"} | {
        PLUGINS[cell.provider]
        for cell in fleet.cells.values()
        if cell.provider in PLUGINS
    }
    missing = sorted(
        plugin
        for plugin in wanted
        if not any(name.startswith(f"resource-{plugin}-v") for name in installed)
    )
    yield CheckResult(
        "Pulumi plugins",
        not missing,
        f"missing: {', '.join(missing)}" if missing else ", ".join(sorted(wanted)),
        "pulumi install" if missing else "",
    )
    backend = env.get("PULUMI_BACKEND_URL") or (
        str(home / "credentials.json") if (home / "credentials.json").exists() else ""
    )
    yield CheckResult(
        "state backend",
        bool(backend),
        backend or "not logged in",
        "" if backend else "pulumi login s3://<state-bucket>?region=<region>",
    )
    own = env.get("PULUMI_CONFIG_PASSPHRASE") or env.get(
        "PULUMI_CONFIG_PASSPHRASE_FILE"
    )
    stacks = sorted((root / "stacks").glob("Pulumi.*.yaml"))
    without = [s.name for s in stacks if "secretsprovider:" not in s.read_text("utf-8")]
    found = "a passphrase" if own else "set in every stack"
    missing_in = [] if own else without
    yield CheckResult(
        "secrets provider",
        not missing_in,
        f"not set in {', '.join(missing_in)}" if missing_in else found,
        SECRETS_PROVIDER if missing_in else "",
    )


def _pulumi_version(path: str) -> str:
    try:
        run = subprocess.run(
            [path, "version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip()


def _github(env: Mapping[str, str]) -> Iterator[CheckResult]:
    token = next(
        (name for name in ("GITHUB_TOKEN", "GITHUB_APP_ID") if env.get(name)), ""
    )
    yield CheckResult(
        "GitHub credentials for runner groups (stack central)",
        bool(token),
        token or "no GITHUB_TOKEN, no GITHUB_APP_ID",
        "" if token else "export GITHUB_TOKEN=$(gh auth token)",
    )
