"""Examples of the rules about Azure, and of labels and cost there."""

from __future__ import annotations

from pulumi import CustomResource
from pulumi_azure_native import (
    authorization,
    compute,
    consumption,
    containerregistry,
    containerservice,
    keyvault,
    managedidentity,
    network,
)
from pulumi_kubernetes.apiextensions import CustomResource as KubernetesObject

from policy_examples.support import LABELS, Example

GROUP = {"resource_group_name": "fleet"}
SCOPE = "/subscriptions/0000/resourceGroups/fleet"
ROLES = "/subscriptions/0000/providers/Microsoft.Authorization/roleDefinitions"
OWNER = f"{ROLES}/8e3af657-a8ff-443c-a75c-2fe8c4bcb635"
ACR_PULL = f"{ROLES}/7f951dda-4ed3-4680-a7ca-43fe172d538d"
BLOB_WRITER = f"{ROLES}/ba92f5b4-2d11-453d-a403-e96b0029c9fe"
ISSUER = "https://token.actions.githubusercontent.com"
AKS_ISSUER = "https://eastus.oic.prod-aks.azure.com/0000/1111/"
AUDIENCE = "api://AzureADTokenExchange"
ENVIRONMENT = "repo:pytorch/ci-infra:environment:deploy"
SHARED = {key: str(value) for key, value in LABELS.items()}


def cluster(**args: object) -> containerservice.ManagedCluster:
    return containerservice.ManagedCluster("cluster", **GROUP, **args)  # type: ignore[arg-type]


def pool(**args: object) -> containerservice.AgentPool:
    return containerservice.AgentPool(
        "pool",
        resource_name_="cluster",
        **GROUP,
        **args,  # type: ignore[arg-type]
    )


def node_class(**spec: object) -> KubernetesObject:
    return KubernetesObject(
        "nodes",
        api_version="karpenter.azure.com/v1beta1",
        kind="AKSNodeClass",
        metadata={"name": "nodes"},
        spec=spec,
    )


def scale_set(**profile: object) -> compute.VirtualMachineScaleSet:
    return compute.VirtualMachineScaleSet(
        "machines",
        virtual_machine_profile=profile,  # type: ignore[arg-type]
        **GROUP,
    )


def machine(**args: object) -> compute.VirtualMachine:
    return compute.VirtualMachine("machine", **GROUP, **args)  # type: ignore[arg-type]


def linux(no_password: bool | None, **profile: object) -> dict[str, object]:
    config = {"disable_password_authentication": no_password}
    return {"os_profile": {"linux_configuration": config, **profile}}


def addressed(public: bool) -> dict[str, object]:
    entry: dict[str, object] = {"name": "first"}
    if public:
        entry["public_ip_address_configuration"] = {"name": "public"}
    interface = {"name": "first", "ip_configurations": [entry]}
    return {"network_profile": {"network_interface_configurations": [interface]}}


def interface(public: bool) -> None:
    address = network.PublicIPAddress("address", **GROUP)
    entry: dict[str, object] = {"name": "first"}
    if public:
        entry["public_ip_address"] = {"id": address.id}
    network.NetworkInterface("interface", ip_configurations=[entry], **GROUP)  # type: ignore[list-item]


def credential(
    subject: str,
    issuer: str = ISSUER,
    audiences: tuple[str, ...] = (AUDIENCE,),
    role: str | None = None,
) -> None:
    identity = managedidentity.UserAssignedIdentity("jobs", **GROUP)
    managedidentity.FederatedIdentityCredential(
        "credential",
        resource_name_=identity.name,
        subject=subject,
        issuer=issuer,
        audiences=list(audiences),
        **GROUP,
    )
    if role is not None:
        assignment(role, principal=identity.principal_id)


def application(subject: str) -> None:
    """A credential of an Entra application, from the provider `azuread`."""
    CustomResource(
        "azuread:index/applicationFederatedIdentityCredential:"
        "ApplicationFederatedIdentityCredential",
        "application",
        {
            "applicationId": "/applications/1",
            "displayName": "github",
            "audiences": [AUDIENCE],
            "issuer": ISSUER,
            "subject": subject,
        },
    )


def assignment(role: str, scope: str = SCOPE, principal: object = "p") -> None:
    authorization.RoleAssignment(
        "assignment",
        principal_id=principal,  # type: ignore[arg-type]
        principal_type="ServicePrincipal",
        role_definition_id=role,
        scope=scope,
    )


def role(*actions: str, denied: tuple[str, ...] = ()) -> None:
    authorization.RoleDefinition(
        "role",
        role_name="jobs",
        scope=SCOPE,
        assignable_scopes=[SCOPE],
        permissions=[{"actions": list(actions), "not_actions": list(denied)}],
    )


def rule(source: str, access: str = "Allow", **args: object) -> None:
    network.SecurityRule(
        "rule",
        network_security_group_name="group",
        access=access,
        direction="Inbound",
        protocol="Tcp",
        priority=100,
        source_address_prefix=source,
        destination_port_range="22",
        **GROUP,
        **args,  # type: ignore[arg-type]
    )


def group(*sources: str) -> None:
    network.NetworkSecurityGroup(
        "group",
        security_rules=[
            {
                "name": "in",
                "access": "Allow",
                "direction": "Inbound",
                "protocol": "*",
                "priority": 100,
                "source_address_prefixes": list(sources),
                "destination_port_ranges": ["443", "3389"],
            }
        ],
        **GROUP,
    )


def registry(**args: object) -> None:
    containerregistry.Registry(
        "images",
        sku={"name": "Premium"},
        **GROUP,
        **args,  # type: ignore[arg-type]
    )


def vault(**properties: object) -> None:
    keyvault.Vault(
        "vault",
        properties={
            "tenant_id": "0000",
            "sku": {"family": "A", "name": "standard"},
            **properties,
        },  # type: ignore[arg-type]
        **GROUP,
    )


def trusted(secure: bool = True, kind: str | None = "TrustedLaunch") -> dict:
    return {
        "security_profile": {
            "security_type": kind,
            "uefi_settings": {"secure_boot_enabled": secure, "v_tpm_enabled": True},
        }
    }


def budgeted(funder: str, notify: bool = True) -> None:
    network.VirtualNetwork("network", tags={"ci_funder": "acme"}, **GROUP)
    alert = {
        "contact_emails": ["infra@example.org"],
        "enabled": True,
        "operator": "GreaterThan",
        "threshold": 90,
    }
    consumption.Budget(
        "budget",
        amount=1000,
        category="Cost",
        scope="/subscriptions/0000",
        time_grain="Monthly",
        time_period={"start_date": "2026-01-01T00:00:00Z"},
        filter={"tags": {"name": "ci_funder", "operator": "In", "values": [funder]}},
        notifications={"ninety": alert} if notify else None,
    )


EXAMPLES: list[Example] = [
    Example(
        "R-AZ-01",
        "a private cluster",
        lambda: cluster(api_server_access_profile={"enable_private_cluster": True}),
    ),
    Example(
        "R-AZ-01",
        "listed ranges",
        lambda: cluster(
            api_server_access_profile={"authorized_ip_ranges": ["192.0.2.0/24"]}
        ),
    ),
    Example("R-AZ-01", "the default", cluster, ("public and lists no ranges",)),
    Example(
        "R-AZ-01",
        "the world",
        lambda: cluster(
            api_server_access_profile={"authorized_ip_ranges": ["0.0.0.0/0"]}
        ),
        ("open to 0.0.0.0/0",),
    ),
    Example(
        "R-AZ-02",
        "Entra only",
        lambda: cluster(
            disable_local_accounts=True,
            aad_profile={"managed": True, "enable_azure_rbac": True},
        ),
    ),
    Example(
        "R-AZ-02",
        "the default",
        cluster,
        ("local accounts are on", "not come from Entra"),
    ),
    Example(
        "R-AZ-02",
        "no checks",
        lambda: cluster(
            disable_local_accounts=True,
            enable_rbac=False,
            aad_profile={"managed": True},
        ),
        ("not checked at all",),
    ),
    Example(
        "R-AZ-03",
        "both on",
        lambda: cluster(
            oidc_issuer_profile={"enabled": True},
            security_profile={"workload_identity": {"enabled": True}},
        ),
    ),
    Example(
        "R-AZ-03",
        "the default",
        cluster,
        ("the OIDC issuer is off", "workload identity is off"),
    ),
    Example(
        "R-AZ-04",
        "cilium",
        lambda: cluster(
            network_profile={"network_policy": "cilium", "network_dataplane": "cilium"}
        ),
    ),
    Example("R-AZ-04", "the default", cluster, ("networkPolicy is not set",)),
    Example(
        "R-AZ-04",
        "none",
        lambda: cluster(network_profile={"network_policy": "none"}),
        ("networkPolicy is none",),
    ),
    Example("R-AZ-05", "a pool", lambda: pool(enable_node_public_ip=False)),
    Example(
        "R-AZ-05",
        "a public pool",
        lambda: pool(enable_node_public_ip=True),
        ("nodes have public",),
    ),
    Example(
        "R-AZ-05",
        "a public pool of a cluster",
        lambda: cluster(
            agent_pool_profiles=[
                {"name": "a", "enable_node_public_ip": False},
                {"name": "b", "enable_node_public_ip": True},
            ]
        ),
        ("nodes have public",),
    ),
    Example("R-AZ-05", "machines", lambda: scale_set(**addressed(False))),
    Example(
        "R-AZ-05",
        "public machines",
        lambda: scale_set(**addressed(True)),
        ("has a public address",),
    ),
    Example("R-AZ-05", "an interface", lambda: interface(False)),
    Example(
        "R-AZ-05", "a public interface", lambda: interface(True), ("has a public",)
    ),
    Example(
        "R-AZ-06",
        "an encrypted pool",
        lambda: pool(enable_encryption_at_host=True, os_disk_type="Ephemeral"),
    ),
    Example(
        "R-AZ-06",
        "a plain pool",
        lambda: pool(os_disk_type="Managed"),
        ("encryption at host is off", "outlives"),
    ),
    Example(
        "R-AZ-06",
        "encrypted machines",
        lambda: scale_set(
            security_profile={"encryption_at_host": True},
            storage_profile={"os_disk": {"diff_disk_settings": {"option": "Local"}}},
        ),
    ),
    Example(
        "R-AZ-06",
        "a plain machine",
        machine,
        ("encryption at host is off", "outlives"),
    ),
    Example(
        "R-AZ-06",
        "auto-provisioning",
        lambda: node_class(security={"encryptionAtHost": True}),
    ),
    Example(
        "R-AZ-06", "plain auto-provisioning", node_class, ("encryption at host is off",)
    ),
    Example(
        "R-AZ-07",
        "a pool",
        lambda: pool(
            security_profile={"enable_secure_boot": True, "enable_vtpm": True}
        ),
    ),
    Example(
        "R-AZ-07",
        "a pool without",
        pool,
        ("enableSecureBoot and enableVTPM not set to true",),
    ),
    Example("R-AZ-07", "machines", lambda: scale_set(**trusted())),
    Example("R-AZ-07", "one machine", lambda: machine(**trusted())),
    Example(
        "R-AZ-07",
        "a machine without secure boot",
        lambda: machine(**trusted(secure=False)),
        ("secureBootEnabled not set",),
    ),
    Example(
        "R-AZ-07",
        "machines without",
        lambda: scale_set(**trusted(kind=None)),
        ("securityType is not set",),
    ),
    Example(
        "R-AZ-07",
        "auto-provisioning",
        lambda: node_class(
            security={"trustedLaunch": {"secureBoot": True, "vtpm": True}}
        ),
    ),
    Example(
        "R-AZ-07",
        "auto-provisioning without",
        lambda: node_class(security={"trustedLaunch": {"vtpm": True}}),
        ("secureBoot not set to true",),
    ),
    Example("R-AZ-08", "no password", lambda: machine(**linux(True))),
    Example("R-AZ-08", "a disk that brings its own", machine),
    Example(
        "R-AZ-08",
        "nothing said",
        lambda: scale_set(**linux(None)),
        ("password is allowed",),
    ),
    Example(
        "R-AZ-08",
        "a password",
        lambda: machine(**linux(True, admin_password="Correct-Horse-1")),
        ("password is set",),
    ),
    Example("R-AZ-09", "an environment", lambda: credential(ENVIRONMENT)),
    Example(
        "R-AZ-09",
        "the newer form",
        lambda: credential("repo:pytorch@123/ci-infra@456:ref:refs/heads/main"),
    ),
    Example(
        "R-AZ-09",
        "one service account",
        lambda: credential("system:serviceaccount:ci-l4:runner", AKS_ISSUER),
    ),
    Example(
        "R-AZ-09",
        "pull requests that only read",
        lambda: credential("repo:pytorch/pytorch:pull_request", role=ACR_PULL),
    ),
    Example(
        "R-AZ-09",
        "pull requests that write",
        lambda: credential("repo:pytorch/pytorch:pull_request", role=BLOB_WRITER),
        ("lets pull requests in",),
    ),
    Example(
        "R-AZ-09",
        "a wildcard",
        lambda: credential("repo:pytorch/*"),
        ("has a wildcard",),
    ),
    Example(
        "R-AZ-09",
        "the default account",
        lambda: credential("system:serviceaccount:ci-l4:default", AKS_ISSUER),
        ("every pod of the namespace",),
    ),
    Example(
        "R-AZ-09",
        "another audience",
        lambda: credential(ENVIRONMENT, audiences=(AUDIENCE, "https://github.com/x")),
        ("the audience is api://AzureADTokenExchange, https://github.com/x",),
    ),
    Example("R-AZ-09", "an application", lambda: application(ENVIRONMENT)),
    Example(
        "R-AZ-09",
        "an application for any repository",
        lambda: application("repo:pytorch"),
        ("does not name one repository",),
    ),
    Example("R-AZ-10", "a narrow role", lambda: assignment(ACR_PULL)),
    Example(
        "R-AZ-10",
        "a role of its own",
        lambda: role("Microsoft.Storage/storageAccounts/read"),
    ),
    Example("R-AZ-10", "owner", lambda: assignment(OWNER), ("assigns Owner",)),
    Example(
        "R-AZ-10",
        "a whole subscription",
        lambda: assignment(ACR_PULL, "/subscriptions/0000"),
        ("reaches all of /subscriptions/0000",),
    ),
    Example(
        "R-AZ-10",
        "a role that can assign roles",
        lambda: role("Microsoft.Authorization/roleAssignments/write"),
        ("anything: Microsoft.Authorization/roleAssignments/write",),
    ),
    Example(
        "R-AZ-10", "everything", lambda: role("*"), ("become able to do, anything: *",)
    ),
    Example("R-AZ-11", "a range", lambda: rule("10.0.0.0/8")),
    Example("R-AZ-11", "a denial", lambda: rule("Internet", "Deny")),
    Example("R-AZ-11", "SSH", lambda: rule("Internet"), ("lets Internet in on 22",)),
    Example(
        "R-AZ-11",
        "one source of several",
        lambda: group("10.0.0.0/8", "0.0.0.0/0"),
        ("lets 0.0.0.0/0 in on 443, 3389",),
    ),
    Example(
        "R-AZ-12",
        "private",
        lambda: registry(admin_user_enabled=False, public_network_access="Disabled"),
    ),
    Example(
        "R-AZ-12",
        "open",
        lambda: registry(admin_user_enabled=True, anonymous_pull_enabled=True),
        ("administrator's password", "everybody may pull", "from the internet"),
    ),
    Example(
        "R-AZ-13",
        "private",
        lambda: vault(public_network_access="disabled", enable_purge_protection=True),
    ),
    Example(
        "R-AZ-13",
        "listed ranges",
        lambda: vault(
            enable_purge_protection=True,
            network_acls={
                "default_action": "Deny",
                "ip_rules": [{"value": "192.0.2.0/24"}],
            },
        ),
    ),
    Example("R-AZ-13", "the default", vault, ("from the internet", "can be purged")),
    Example(
        "R-TAG-01",
        "an Azure network",
        lambda: network.VirtualNetwork("network", tags=SHARED, **GROUP),
    ),
    Example(
        "R-TAG-01",
        "an Azure subnet takes no tags",
        lambda: network.Subnet("subnet", virtual_network_name="network", **GROUP),
    ),
    Example("R-TAG-01", "an Azure pool", pool, ("ci_project, ci_env",)),
    Example("R-TAG-01", "Azure's auto-provisioning", lambda: node_class(tags=SHARED)),
    Example("R-COST-01", "a budget at Azure", lambda: budgeted("acme")),
    Example(
        "R-COST-01",
        "a budget of somebody else at Azure",
        lambda: budgeted("other", notify=False),
        ("alerts nobody", "what acme pays"),
    ),
    Example(
        "R-COST-02",
        "release nodes at Azure",
        lambda: pool(tags={"ci_trust": "release"}, scale_set_priority="Regular"),
    ),
    Example(
        "R-COST-02",
        "spot release nodes at Azure",
        lambda: pool(tags={"ci_trust": "release"}, scale_set_priority="Spot"),
        ("release nodes are spot machines",),
    ),
]
