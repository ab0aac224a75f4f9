"""Federation: IBM Cloud takes no token of GitHub, and says so here.

IAM lets people in through a SAML identity provider or an App ID instance, and compute
resources through the token of the service that runs them: virtual servers, Kubernetes
and OpenShift clusters, Code Engine, Power (cloud.ibm.com/docs/account, "Creating
trusted profiles"; the provider's ``cr_type`` is one of VSI, PVS, BMS, IKS_SA, ROKS_SA
and CE). No way in takes a token whose issuer is
``token.actions.githubusercontent.com``. The only substitute would be a static API key
in GitHub's secrets, which no class here may have.

So classes that run outside the fleet's clusters cannot reach central stores on IBM
Cloud. With the central stores on a cloud that takes GitHub's token they can.
"""

from __future__ import annotations

from runfleet.errors import InputError, Problem


class FederationError(InputError):
    """A class outside the clusters wants central stores on IBM Cloud (exit 2)."""

    def __init__(self, class_name: str) -> None:
        """Say which class it is, and what can be done."""
        super().__init__(
            [
                Problem(
                    "fleet file",
                    0,
                    f"runner_classes.{class_name}.federation",
                    "IBM Cloud's IAM takes no token of GitHub, so a class outside the "
                    "fleet's clusters cannot reach central stores there; put `central` "
                    "on a cloud that takes it, or run the class in a cell",
                    found="central.provider: ibm",
                    allowed="aws, gcp, azure",
                )
            ]
        )
