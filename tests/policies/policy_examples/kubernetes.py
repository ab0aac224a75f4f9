"""Examples of the rules about Kubernetes, ARC, GitHub, classes and cost."""

from __future__ import annotations

from typing import Any

import pulumi_aws as aws
import pulumi_github as github
import pulumi_kubernetes as k8s
from pulumi_kubernetes.apiextensions import CustomResource

from policy_examples.support import LABELS, Example, service_trust

GROUP = "ci"
DIGEST = "@sha256:" + "0" * 64
IMAGE = "ghcr.io/actions/actions-runner:2.328.0"
ENFORCE = "pod-security.kubernetes.io/enforce"
STARTUP = "gha_job_startup_duration_seconds"
WORKFLOW = "o/r/.github/workflows/release.yml"


def hardened() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container(name: str = "runner", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": IMAGE,
        "securityContext": hardened(),
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        "env": [
            {"name": "ACTIONS_RUNNER_CONTAINER_HOOKS", "value": "/k8s/index.js"},
            {"name": "ACTIONS_RUNNER_REQUIRE_JOB_CONTAINER", "value": "true"},
            {"name": "ACTIONS_RUNNER_KUBERNETES_NAMESPACE", "value": "jobs"},
        ],
        **more,
    }


def pod(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "serviceAccountName": "runner",
        "containers": list(containers) or [container()],
        **more,
    }


def scale_set(
    name: str = "set", labels: dict[str, str] | None = None, **spec: Any
) -> CustomResource:
    namespace = spec.pop("namespace", "runners")
    template = spec.pop("pod", None) or pod()
    return CustomResource(
        name,
        api_version="actions.github.com/v1alpha1",
        kind="AutoscalingRunnerSet",
        metadata={"name": name, "namespace": namespace, "labels": labels or {}},
        spec={
            "githubConfigUrl": "https://github.com/pytorch",
            "githubConfigSecret": "app",
            "runnerGroup": GROUP,
            "maxRunners": 10,
            "listenerMetrics": {"histograms": {STARTUP: {"labels": ["repository"]}}},
            "template": {"spec": template},
            **spec,
        },
    )


def release(chart: str = "gha-runner-scale-set", **values: Any) -> k8s.helm.v3.Release:
    return k8s.helm.v3.Release(
        "release",
        chart=f"oci://ghcr.io/actions/actions-runner-controller-charts/{chart}",
        namespace="runners",
        values=values,
    )


def controller(**values: Any) -> k8s.helm.v3.Release:
    return release("gha-runner-scale-set-controller", **values)


def good_controller() -> None:
    controller(
        flags={"watchSingleNamespace": "runners", "logLevel": "info"},
        podSecurityContext={"runAsNonRoot": True},
        securityContext=hardened(),
        metrics={"listenerAddr": ":8080"},
    )


def namespace(name: str, level: str | None) -> k8s.core.v1.Namespace:
    labels = {ENFORCE: level} if level else {}
    return k8s.core.v1.Namespace(name, metadata={"name": name, "labels": labels})


def spaces(level: str | None) -> None:
    scale_set()
    namespace("runners", "baseline")
    namespace("jobs", level)


def controller_space(level: str) -> None:
    good_controller()
    namespace("runners", level)


def network_policy(
    name: str, space: str, egress: list[dict[str, Any]] | None = None, **spec: Any
) -> None:
    k8s.networking.v1.NetworkPolicy(
        f"{name}-{space}",
        metadata={"name": name, "namespace": space},
        spec={
            "pod_selector": {},
            "policy_types": ["Ingress", "Egress"],
            "egress": egress or [],
            **spec,
        },
    )


EXCEPT = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"]


def https(cidr: str, excluded: list[str], *ports: int) -> dict[str, Any]:
    return {
        "to": [{"ip_block": {"cidr": cidr, "except_": excluded}}],
        "ports": [{"port": port, "protocol": "TCP"} for port in ports or (443,)],
    }


def isolated(*egress: dict[str, Any], **spec: Any) -> None:
    scale_set()
    network_policy("deny", "runners")
    network_policy("rules", "jobs", list(egress), **spec)


def hook(spec: str) -> k8s.core.v1.ConfigMap:
    return k8s.core.v1.ConfigMap(
        "hook",
        metadata={"name": "hook", "namespace": "runners"},
        data={"content.yaml": f"metadata: {{}}\nspec:\n{spec}"},
    )


HARD = (
    "securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true,"
    " capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}"
)


def job(more: str = "", inside: str = HARD) -> k8s.core.v1.ConfigMap:
    return hook(
        f"  automountServiceAccountToken: false\n  serviceAccountName: job\n{more}"
        f"  containers:\n    - name: $job\n      {inside}\n"
    )


def role(
    *rules: dict[str, Any], space: str = "runners", account: str = "runner"
) -> None:
    k8s.rbac.v1.Role(
        f"{account}-{space}",
        metadata={"name": account, "namespace": space},
        rules=[{"api_groups": [""], **rule} for rule in rules],
    )
    k8s.rbac.v1.RoleBinding(
        f"{account}-{space}",
        metadata={"name": account, "namespace": space},
        role_ref={
            "api_group": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": account,
        },
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": "runners"}],
    )


def with_role(*rules: dict[str, Any], space: str = "runners") -> None:
    scale_set()
    role(*rules, space=space)


PODS = {"resources": ["pods"], "verbs": ["create", "get"]}
SECRETS = {"resources": ["secrets"], "verbs": ["create", "get", "list"]}


def administrator() -> None:
    scale_set()
    k8s.rbac.v1.ClusterRoleBinding(
        "all",
        role_ref={
            "api_group": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        subjects=[{"kind": "Group", "name": "system:serviceaccounts:runners"}],
    )


def secrets_beside_jobs() -> None:
    with_role(SECRETS, space="jobs")
    k8s.core.v1.Secret("s", metadata={"name": "s", "namespace": "jobs"})


def bound_job() -> None:
    job()
    role(PODS, account="job")


def quotas(*spaces_: str, template: dict[str, Any] | None = None) -> None:
    scale_set(pod=template)
    for space in spaces_:
        k8s.core.v1.ResourceQuota(
            space, metadata={"namespace": space}, spec={"hard": {"pods": "10"}}
        )
        k8s.core.v1.LimitRange(
            space, metadata={"namespace": space}, spec={"limits": [{"type": "Pod"}]}
        )


def image(name: str) -> CustomResource:
    return scale_set(pod=pod(container(image=name)))


def groups(*names: str) -> None:
    scale_set()
    for name in names:
        group(name)


def group(name: str = "ci", **more: Any) -> github.ActionsRunnerGroup:
    return github.ActionsRunnerGroup(
        name, **{"name": name, "visibility": "selected", **more}
    )


def env(name: str, value: str) -> CustomResource:
    return scale_set(pod=pod(container(env=[{"name": name, "value": value}])))


def dind(trust: str) -> CustomResource:
    docker = container("dind", image="docker:27.0-dind", env=[])
    docker["securityContext"] = {"privileged": True}
    plain = container(env=[])
    return scale_set(labels={"ci_trust": trust}, pod=pod(plain, docker))


def metrics(*labels: str) -> None:
    histogram = {"gha_job_startup_duration_seconds": {"labels": list(labels)}}
    scale_set(listenerMetrics={"histograms": histogram})


def identity(role_class: str, own_class: str, home: str) -> None:
    held = aws.iam.Role(
        "role",
        assume_role_policy=service_trust("pods.eks.amazonaws.com"),
        tags={"ci_runner_class": role_class},
    )
    k8s.core.v1.Namespace(
        "space", metadata={"name": "space", "labels": {"ci_runner_class": home}}
    )
    aws.eks.PodIdentityAssociation(
        "join",
        cluster_name="cluster",
        namespace="space",
        service_account="job",
        role_arn=held.arn,
        tags={"ci_runner_class": own_class},
    )


def two_sets(first: dict[str, Any], second: dict[str, Any]) -> None:
    scale_set("one", **first)
    scale_set("two", **second)


def class_nodes(tag: str) -> None:
    held = aws.iam.Role(
        "role",
        name="gpu-nodes",
        assume_role_policy=service_trust("ec2.amazonaws.com"),
        tags={"ci_runner_class": "gpu"},
    )
    CustomResource(
        "nodes",
        api_version="karpenter.k8s.aws/v1",
        kind="EC2NodeClass",
        metadata={"name": "nodes"},
        spec={"role": held.name, "tags": {"ci_runner_class": tag}},
    )


def node_pool(trust: str, *kinds: str) -> CustomResource:
    return CustomResource(
        "pool",
        api_version="karpenter.sh/v1",
        kind="NodePool",
        metadata={"name": "pool"},
        spec={
            "template": {
                "metadata": {"labels": {"ci_trust": trust}},
                "spec": {
                    "requirements": [
                        {
                            "key": "karpenter.sh/capacity-type",
                            "operator": "In",
                            "values": list(kinds),
                        }
                    ]
                },
            }
        },
    )


def budget(funder: str, **more: Any) -> None:
    aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags={"ci_funder": "foundation"})
    aws.budgets.Budget(
        "budget",
        budget_type="COST",
        time_unit="MONTHLY",
        limit_amount="10",
        limit_unit="USD",
        cost_filters=[{"name": "TagKeyValue", "values": [f"user:ci_funder${funder}"]}],
        **more,
    )


NOTIFY = {
    "notifications": [
        {
            "comparison_operator": "GREATER_THAN",
            "threshold": 80,
            "threshold_type": "PERCENTAGE",
            "notification_type": "ACTUAL",
            "subscriber_email_addresses": ["infra@example.org"],
        }
    ]
}


def legacy(**spec: object) -> CustomResource:
    return CustomResource(
        "legacy",
        api_version="actions.summerwind.dev/v1alpha1",
        kind="RunnerDeployment",
        spec={"template": {"spec": {"repository": "demo-org/demo", **spec}}},
    )


EXAMPLES = [
    Example("R-K8S-01", "baseline for jobs", lambda: spaces("baseline")),
    Example("R-K8S-01", "restricted", lambda: controller_space("restricted")),
    Example("R-K8S-01", "no label", lambda: spaces(None), ("is not set",)),
    Example("R-K8S-01", "privileged", lambda: spaces("privileged"), ("privileged",)),
    Example(
        "R-K8S-01",
        "baseline for the controller",
        lambda: controller_space("baseline"),
        ("is baseline, not restricted",),
    ),
    Example(
        "R-K8S-02", "all denied but HTTPS", lambda: isolated(https("0.0.0.0/0", EXCEPT))
    ),
    Example("R-K8S-02", "own network", lambda: isolated(https("10.12.0.0/16", []))),
    Example(
        "R-K8S-02",
        "no policy at all",
        lambda: scale_set(),
        (
            "denies ingress by default in namespace jobs",
            "denies egress by default in namespace jobs",
            "denies ingress by default in namespace runners",
            "denies egress by default in namespace runners",
        ),
    ),
    Example(
        "R-K8S-02",
        "a policy that selects some pods (CKV2_K8S_6 passes this)",
        lambda: isolated(pod_selector={"match_labels": {"app": "x"}}),
        ("denies ingress by default", "denies egress by default"),
    ),
    Example(
        "R-K8S-02",
        "ingress only",
        lambda: isolated(policy_types=["Ingress"]),
        ("denies egress by default in namespace jobs",),
    ),
    Example(
        "R-K8S-02",
        "metadata within reach",
        lambda: isolated(https("0.0.0.0/0", EXCEPT[:3])),
        ("reaches the metadata service 169.254.169.254",),
    ),
    Example(
        "R-K8S-02",
        "a private range within reach",
        lambda: isolated(https("0.0.0.0/0", EXCEPT[1:])),
        ("reaches all of the private range 10.0.0.0/8",),
    ),
    Example(
        "R-K8S-02",
        "every port",
        lambda: isolated(https("0.0.0.0/0", EXCEPT, 443, 4444)),
        ("opens port 443, 4444",),
    ),
    Example(
        "R-K8S-02",
        "to everywhere",
        lambda: isolated({"ports": [{"port": 443}]}),
        ("metadata included",),
    ),
    Example("R-K8S-03", "nothing of the host", lambda: scale_set()),
    Example(
        "R-K8S-03",
        "the second container is privileged",
        lambda: dind("untrusted-pr"),
        ("is privileged",),
    ),
    Example(
        "R-K8S-03",
        "the runtime's socket in a hook template",
        lambda: job(
            "  hostNetwork: true\n  volumes:\n"
            "    - {name: d, hostPath: {path: /run/containerd/containerd.sock}}\n"
        ),
        ("hostNetwork is true", "the container runtime's socket"),
    ),
    Example(
        "R-K8S-03",
        "in Helm values",
        lambda: release(
            template={"spec": pod(container(), hostPID=True)},
        ),
        ("hostPID is true",),
    ),
    Example(
        "R-K8S-03",
        "a node agent",
        lambda: k8s.apps.v1.Deployment(
            "agent",
            metadata={"namespace": "kube-system"},
            spec={
                "selector": {},
                "template": {"spec": {"host_network": True, "containers": []}},
            },
        ),
    ),
    Example("R-K8S-04", "hardened", lambda: scale_set()),
    Example("R-K8S-04", "a hardened job pod", lambda: job()),
    Example(
        "R-K8S-04",
        "a job pod that says nothing",
        lambda: job(inside="image: x"),
        ("allowPrivilegeEscalation is not false",),
    ),
    Example(
        "R-K8S-04",
        "a job that may do everything as root",
        lambda: job(
            inside=HARD.replace("drop: [ALL]", "drop: [ALL], add: [SYS_ADMIN]").replace(
                " runAsNonRoot: true,", ""
            )
        ),
        ("adds the capabilities SYS_ADMIN, runAsNonRoot is not true",),
        {"root_in_jobs": False},
    ),
    Example(
        "R-K8S-04",
        "a runner as root",
        lambda: scale_set(
            pod=pod(container(securityContext={**hardened(), "runAsNonRoot": False}))
        ),
        ("runAsNonRoot is not true",),
    ),
    Example("R-K8S-05", "no credentials", lambda: job()),
    Example(
        "R-K8S-05",
        "mounted by default",
        lambda: hook("  containers:\n    - name: $job\n"),
        ("automountServiceAccountToken is not set",),
    ),
    Example("R-K8S-05", "bound to a role", bound_job, ("has the role job",)),
    Example("R-K8S-06", "pods only", lambda: with_role(PODS)),
    Example(
        "R-K8S-06",
        "secrets where only jobs are",
        lambda: with_role(SECRETS, space="jobs"),
    ),
    Example(
        "R-K8S-06",
        "secrets beside the App key",
        lambda: with_role(SECRETS),
        ("may read all secrets of namespace runners",),
    ),
    Example(
        "R-K8S-06",
        "other secrets in the job namespace",
        secrets_beside_jobs,
        ("may read all secrets of namespace jobs",),
    ),
    Example(
        "R-K8S-06",
        "wildcards",
        lambda: with_role({"resources": ["pods"], "verbs": ["*"]}),
        ("may use every verb",),
    ),
    Example("R-K8S-06", "by group", administrator, ("has the role cluster-admin",)),
    Example("R-K8S-07", "limits and quotas", lambda: quotas("runners", "jobs")),
    Example(
        "R-K8S-07",
        "one namespace without",
        lambda: quotas("runners"),
        ("jobs has no ResourceQuota", "jobs has no LimitRange"),
    ),
    Example(
        "R-K8S-07",
        "a container without limits",
        lambda: quotas(
            "runners",
            "jobs",
            template=pod(container(resources={"limits": {"cpu": "1"}})),
        ),
        ("no limit of memory",),
    ),
    Example("R-K8S-08", "a digest", lambda: image(f"ghcr.io/x/y{DIGEST}")),
    Example("R-K8S-08", "a release tag", lambda: image(IMAGE)),
    Example("R-K8S-08", "no tag", lambda: image("ghcr.io/x/y"), ("has no tag",)),
    Example(
        "R-K8S-08", "latest", lambda: image("ghcr.io/x/y:latest"), ("tag that moves",)
    ),
    Example(
        "R-K8S-08", "from Docker Hub", lambda: image("x/y:1.0"), ("docker.io, which",)
    ),
    Example("R-ARC-01", "by name", lambda: release(githubConfigSecret="app")),
    Example(
        "R-ARC-01",
        "inline",
        lambda: release(githubConfigSecret={"github_app_private_key": "k"}),
        ("holds the key itself",),
    ),
    Example(
        "R-ARC-01",
        "written by the program",
        lambda: k8s.core.v1.Secret("app", string_data={"github_app_private_key": "k"}),
        ("writes github_app_private_key into a Secret",),
    ),
    Example(
        "R-ARC-01",
        "a token in the place of the name",
        lambda: release(githubConfigSecret="ghp_abc"),
        ("is a token",),
    ),
    Example("R-ARC-02", "an App", lambda: release(githubConfigSecret="app")),
    Example(
        "R-ARC-02",
        "a personal token",
        lambda: release(githubConfigSecret={"github_token": "t"}),
        ("github_token is set",),
    ),
    Example("R-ARC-03", "a managed group", lambda: groups("ci")),
    Example("R-ARC-03", "managed elsewhere", lambda: scale_set()),
    Example("R-ARC-03", "not managed", lambda: groups("other"), ("no runner group",)),
    Example("R-ARC-03", "default", lambda: scale_set(runnerGroup=""), ("so default",)),
    Example(
        "R-ARC-03",
        "a repository's address",
        lambda: scale_set(githubConfigUrl="https://github.com/pytorch/pytorch"),
        ("is a repository",),
    ),
    Example("R-ARC-04", "a job container", lambda: scale_set()),
    Example("R-ARC-04", "for releases", lambda: dind("release")),
    Example("R-ARC-04", "for anybody", lambda: dind("untrusted-pr"), ("Docker in",)),
    Example(
        "R-ARC-04",
        "the chart's mode",
        lambda: release(containerMode={"type": "dind"}),
        ("Docker in Docker",),
    ),
    Example("R-ARC-05", "required", lambda: scale_set()),
    Example(
        "R-ARC-05",
        "switched off",
        lambda: env("ACTIONS_RUNNER_REQUIRE_JOB_CONTAINER", "false"),
        ("is 'false'",),
    ),
    Example(
        "R-ARC-05",
        "hooks without it",
        lambda: env("ACTIONS_RUNNER_CONTAINER_HOOKS", "/k8s/index.js"),
        ("is not set",),
    ),
    Example("R-ARC-06", "secrets elsewhere", lambda: with_role(SECRETS, space="jobs")),
    Example(
        "R-ARC-06",
        "another secret by name",
        lambda: with_role(
            {"resources": ["secrets"], "verbs": ["get"], "resource_names": ["other"]}
        ),
    ),
    Example(
        "R-ARC-06",
        "all secrets of the key's namespace",
        lambda: with_role(SECRETS),
        ("may read the App key's Secret app",),
    ),
    Example(
        "R-ARC-06",
        "the key by name",
        lambda: with_role(
            {"resources": ["secrets"], "verbs": ["get"], "resource_names": ["app"]}
        ),
        ("may read the App key's Secret app",),
    ),
    Example(
        "R-ARC-06",
        "the chart's own role",
        lambda: release(containerMode={"type": "kubernetes"}, githubConfigSecret="app"),
        ("the chart's own Role",),
    ),
    Example("R-ARC-07", "bounded", lambda: scale_set()),
    Example("R-ARC-07", "no maximum", lambda: release(), ("maxRunners is not set",)),
    Example(
        "R-ARC-07",
        "over the quota",
        lambda: scale_set(maxRunners=100, minRunners=60),
        ("more than 99", "minRunners is 60"),
        {"most_runners": 99},
    ),
    Example("R-ARC-08", "fits", lambda: scale_set("lf-l-x86iamx-8-16")),
    Example(
        "R-ARC-08",
        "too long",
        lambda: scale_set(runnerScaleSetName="x" * 46),
        ("46 characters",),
    ),
    Example(
        "R-ARC-08",
        "a dot, with GHARTS",
        lambda: scale_set(runnerScaleSetName="linux.rocm"),
        ("cannot route",),
        {"gharts": True},
    ),
    Example("R-ARC-09", "hardened", good_controller),
    Example(
        "R-ARC-09",
        "the chart's defaults",
        lambda: controller(),
        (
            "watchSingleNamespace",
            "logLevel is debug",
            "podSecurityContext is empty",
            "securityContext is empty",
        ),
    ),
    Example("R-ARC-10", "on", lambda: (good_controller(), metrics("repository"))),
    Example("R-ARC-10", "controller off", lambda: controller(), ("metrics are off",)),
    Example(
        "R-ARC-10",
        "a series per job",
        lambda: metrics("repository", "job_name"),
        ("series per job: job_name",),
    ),
    Example("R-ARC-11", "pinned", lambda: image(IMAGE)),
    Example("R-ARC-11", "latest", lambda: image("ghcr.io/x:latest"), ("moves",)),
    Example("R-ARC-11", "the chart's image", lambda: release(), ("tag latest",)),
    Example(
        "R-ARC-11",
        "a tag where a digest is demanded",
        lambda: image(IMAGE),
        ("not by digest",),
        {"digest": True},
    ),
    Example("R-GH-01", "selected", lambda: group()),
    Example("R-GH-01", "all", lambda: group(visibility="all"), ("visibility is all",)),
    Example(
        "R-GH-01",
        "public repositories",
        lambda: group(allows_public_repositories=True),
        ("public repositories may use it",),
    ),
    Example(
        "R-GH-02",
        "a workflow at main",
        lambda: group(
            "release",
            restricted_to_workflows=True,
            selected_workflows=[f"{WORKFLOW}@refs/heads/main"],
        ),
    ),
    Example("R-GH-02", "not a release group", lambda: group()),
    Example("R-GH-02", "any", lambda: group("release"), ("any workflow may use",)),
    Example(
        "R-GH-02",
        "no ref, and a pull request's",
        lambda: group(
            "release",
            restricted_to_workflows=True,
            selected_workflows=[WORKFLOW, f"{WORKFLOW}@refs/pull/1/merge"],
        ),
        ("names no ref", "not a protected ref"),
    ),
    Example(
        "R-GH-02",
        "the group of a release scale set",
        lambda: (group(), scale_set(labels={"ci_trust": "release"})),
        ("any workflow may use ci",),
    ),
    Example(
        "R-GH-03",
        "read",
        lambda: github.ActionsOrganizationWorkflowPermissions(
            "p", organization_slug="o", default_workflow_permissions="read"
        ),
    ),
    Example(
        "R-GH-03",
        "write",
        lambda: github.ActionsOrganizationWorkflowPermissions(
            "p", organization_slug="o", default_workflow_permissions="write"
        ),
        ("defaultWorkflowPermissions is write",),
    ),
    Example("R-CLASS-01", "one class", lambda: identity("gpu", "gpu", "gpu")),
    Example(
        "R-CLASS-01",
        "another class's role",
        lambda: identity("release", "gpu", "gpu"),
        ("joins the role of class release to class gpu", "namespace of class gpu"),
    ),
    Example(
        "R-CLASS-01",
        "own accounts",
        lambda: two_sets({}, {"namespace": "other", "runnerGroup": "release"}),
    ),
    Example(
        "R-CLASS-01",
        "CI and release share an account",
        lambda: two_sets({}, {"runnerGroup": "release"}),
        ("shares the service account runners/runner with one",),
    ),
    Example("R-CLASS-01", "own nodes", lambda: class_nodes("gpu")),
    Example(
        "R-CLASS-01",
        "a class's role on shared nodes",
        lambda: class_nodes("shared"),
        ("nodes of shared have the role of class gpu",),
    ),
    Example(
        "R-CLASS-01",
        "release jobs on shared nodes",
        lambda: scale_set(
            labels={"ci_trust": "release"},
            pod=pod(nodeSelector={"ci_trust": "shared"}),
        ),
        ("jobs of trust release run on nodes for shared",),
    ),
    Example("R-COST-01", "watched", lambda: budget("foundation", **NOTIFY)),
    Example(
        "R-COST-01",
        "another funder's, and silent",
        lambda: budget("donor"),
        ("alerts nobody", "no budget watches what foundation pays"),
    ),
    Example("R-COST-02", "on demand", lambda: node_pool("release", "on-demand")),
    Example("R-COST-02", "spot for tests", lambda: node_pool("shared", "spot")),
    Example(
        "R-COST-02",
        "spot for releases",
        lambda: node_pool("release", "on-demand", "spot"),
        ("release nodes may be on-demand, spot",),
    ),
    Example(
        "R-TAG-01",
        "a namespace",
        lambda: k8s.core.v1.Namespace("n", metadata={"labels": LABELS}),
    ),
    Example(
        "R-TAG-01", "a bare scale set", lambda: scale_set(), ("ci_project, ci_env",)
    ),
    Example("R-EPH-01", "a scale set", lambda: scale_set()),
    Example(
        "R-EPH-01",
        "the legacy controller, one job each",
        lambda: legacy(ephemeral=True),
    ),
    Example(
        "R-EPH-01",
        "the legacy controller, many jobs",
        lambda: legacy(ephemeral=False),
        ("one job after the other",),
    ),
]
