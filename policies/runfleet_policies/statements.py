"""What the multi-cloud working group asks for, statement by statement.

The working group's two drafts hold no numbers; the numbers here are ours, in the
order of the documents: S for ``Security-Guidelines.md`` (commit 62295ec), O for
``Observability-Guidelines.md`` (commit e2001a2), both of
https://github.com/pytorch-fdn/multicloud-ci-infra. The texts are ours too, in short.

Rules name the statements that they answer (:attr:`Rule.anchors`). What a rule cannot
answer, because it is a document or an alert, is listed in :data:`OTHERWISE`; what
stands in neither is unanswered, and the coverage page says so. An answer is seldom
whole: :data:`MISSING` says what it leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SECURITY = "Security-Guidelines.md"
OBSERVABILITY = "Observability-Guidelines.md"


@dataclass(frozen=True)
class Statement:
    """One thing that the working group asks for.

    Attributes:
        id: Our number, such as ``S12``.
        section: Section of the document.
        text: What is asked, in our words.
        optional: Whether the document says "may".
    """

    id: str
    section: str
    text: str
    optional: bool = False

    @property
    def document(self) -> str:
        """The document it stands in."""
        return SECURITY if self.id.startswith("S") else OBSERVABILITY


@dataclass(frozen=True)
class Answer:
    """What answers a statement beside rules.

    Attributes:
        kind: ``document`` or ``alert``.
        where: A page of this repository, or an alert's name.
        what: What it says about the statement.
    """

    kind: str
    where: str
    what: str


_TEXTS = """\
S01|Core principle|The design takes every job for hostile code
S02|Key component 1|A clear border with few known ways through it
S03|Key component 2|Every job gets a fresh instance
S04|Key component 2|Runners cannot reach one another
S05|Key component 2|A runner is destroyed after its job, whatever the result
S06|Key component 2|The same security policies are enforced everywhere
S07|Key component 3|Runners are made when they are needed
S08|Key component 3|A runner exists for one job only
S09|Key component 3|Nothing stays from one job to the next
S10|Key component 3|A runner cannot change its host
S11|Key component 4|Allowed connections out are defined and written down
S12|Key component 4|Connections out are closed unless allowed
S13|Key component 4|An exception is needed by the runner or reviewed by maintainers
S14|Key component 4|Connections to a company's inner network are restricted further
S15|Key component 4|Sensitive inner services cannot be reached directly
S16|Key component 5|Credentials are given at the moment of use
S17|Key component 5|A credential can do the least that is needed
S18|Key component 5|Secrets rotate by themselves
S19|Key component 5|Every use of a secret is logged
S20|Flow 2|The webhook receiver verifies what it forwards
S21|Flow 7|All logs go to one monitoring system
S22|Implementation 1|Every outside collaborator's workflow waits for approval
S23|Implementation 1|Workflows that ask for secrets are reviewed additionally
S24|Implementation 1, 3|A maintainer approves CI on public repositories
S25|Implementation 2|An environment is not used by two workflow runs
S26|Implementation 2|File systems are read-only where they can be
S27|Implementation 3|Only chosen repositories may use the runners
S28|Implementation 3|Sensitive workflows have runners of their own
S29|Implementation 3|Runner groups are managed by the organisation
S30|Implementation 4|No sensitive credential is kept on a runner
S31|Implementation 4|Runners reach clouds through GitHub's OIDC tokens
S32|Implementation 4|Tokens are short, narrow, and replaced when lost
S33|Implementation 5|Connections in that are not needed are blocked
S34|Implementation 5|Runners have private networks and subnets of their own
S35|Implementation 6|Logs are complete, watched by alerts, and reviewed
S36|Host configuration|Hosts are minimal, hardened and patched; incidents have a plan
O01|Pool stability|A new pool is assessed before critical workflows use it
O02|Pool stability|The assessment keeps performance figures of test jobs
O03|Pool stability|The assessment keeps utilisation and stability figures
O04|Pool stability|Each runner type has a written baseline
O05|Incident management|The state of pools is shown as it is now
O06|Incident management|An alert says that a pool is offline
O07|Incident management|An alert says that capacity fell
O08|Incident management|An alert says that performance fell
O09|Incident management|An alert says that a resource runs out
O10|Incident management|Alerts reach the CI infrastructure team
O11|Incident management|Alerts reach the community's maintainers
O12|Incident management|Alerts reach the system's administrators
O13|Metrics|Metrics are shown on hud.pytorch.org
O14|Metrics|Registration and its end are recorded
O15|Metrics|Start and end of jobs are recorded
O16|Metrics|Waiting times are recorded
O17|Metrics|Durations are recorded
O18|Metrics|Use of resources during jobs is recorded
O19|Metrics|Errors and their kinds are recorded
O20|Metrics|Runners give a sign of life
O21|Metrics|Processor, memory and disk are measured
O22|Metrics|Connectivity is measured
O23|Metrics|GitHub's answer times are measured
O24|Metrics|The runner's process is watched
O25|Technical|Metrics are given in OpenTelemetry's form
O26|Technical|Names of metrics follow the conventions
O27|Technical|Labels are the same on all runners
O28|Technical|Aggregation and sampling are done properly
O29|Service levels|Runners are up 99.9 % of the time
O30|Service levels|A job waits five minutes at most
O31|Service levels|Durations stay within 10 % of the baseline
O32|Service levels|Critical alerts are answered within 15 minutes
O33|Service levels|Capacity falls by 10 % at most
O34|Dashboards|The HUD reads OpenTelemetry data
O35|Dashboards|The HUD shows the state as it is now
O36|Dashboards|The HUD draws utilisation
O37|Dashboards|The HUD shows alerts and their history
O38|Dashboards|The HUD shows the capacity of pools
O39|Alternative dashboards|Grafana|optional
O40|Alternative dashboards|Own charts of metrics|optional
O41|Alternative dashboards|Own management of alerts|optional
O42|Alternative dashboards|Own performance reports|optional
O43|Documentation|The monitoring's documentation is current
O44|Documentation|A diagram shows the set-up of runners
O45|Documentation|Own metrics, endpoints and escalation are written down
O46|Documentation|Thresholds to raise and to clear are written down
O47|Documentation|What to do at each alert is written down
O48|Documentation|Documentation is reviewed regularly
O49|Maintenance|Metrics are reviewed regularly
O50|Maintenance|Thresholds are tuned
O51|Maintenance|Performance is improved
O52|Maintenance|Capacity is planned
O53|Compliance|The monitoring's use is reviewed regularly
O54|Compliance|Metrics are analysed every quarter
O55|Compliance|The monitoring's strategy is renewed every year
O56|Implementation|PyTorch runners: own namespace for monitoring, quotas, metrics
O57|Implementation|Community runners: own namespace for monitoring, basic metrics
O58|Alerting|Degradations are posted to the project's Slack channel
O59|Alerting|Alerts have three levels
O60|Alerting|Alerts have one threshold to raise and another to clear
"""

OTHERWISE: Mapping[str, tuple[Answer, ...]] = {
    "S06": (
        Answer(
            "document",
            "docs/first-rehearsal.md",
            "every rehearsal judges every stack and ends with exit 1 at a finding "
            "without a waiver",
        ),
    ),
    "S28": (
        Answer(
            "document",
            "docs/roles-and-access.md",
            "trust splits classes and stores; release classes have their own",
        ),
    ),
    "S29": (
        Answer(
            "document",
            "docs/reference/fleet-file.md",
            "runner groups stand in the fleet file, for the organisation",
        ),
    ),
    "S31": (
        Answer(
            "document",
            "docs/roles-and-access.md",
            "which tokens of GitHub are accepted, and for what",
        ),
    ),
    "O44": (
        Answer(
            "document",
            "docs/architecture.md",
            "the parts of a fleet and how a fleet file becomes them",
        ),
    ),
    "O52": (
        Answer(
            "document",
            "docs/placement.md",
            "where classes are placed, and what happens when capacity is short",
        ),
    ),
}
"""Answers that are not rules, by statement."""

MISSING: Mapping[str, str] = {
    "S01": "that other systems share no node or account with jobs is not checked",
    "S11": "the allowed destinations are not listed for readers",
    "S13": "who must approve is not checked, only that somebody is named until a day",
    "S18": "rotation of secrets, beside that of keys, is not checked",
    "S19": "reads of a cloud's secret store are not checked to be logged",
    "S21": "that logs reach one system is not checked",
    "S22": "GitHub's setting cannot be read; the exception must name it",
    "S24": "GitHub's setting cannot be read; the exception must name it",
    "S26": "judged for the controller; a job needs a disk that it can write",
    "S32": "replacing a lost token has no runbook",
    "S35": "no alerts on use of credentials or traffic, and no review of logs",
    "S36": "no incident-response plan, no endpoint protection, no age of images",
    "O04": "a label's size is checked; no figures of performance are kept",
    "O09": "quotas keep a resource from running out; no alert says that it does",
    "O10": "a contact is demanded, and budgets alert; no pool alerts exist",
    "O12": "a contact is demanded; no alerts exist",
    "O13": "metrics are switched on; sending them to the HUD is not",
    "O19": "ARC's metrics are switched on; errors of jobs are not collected",
    "O25": "ARC's metrics are switched on; no OpenTelemetry exporter exists",
    "O29": "spot machines are kept from releases; nothing measures",
    "O32": "a contact is demanded; nothing measures",
    "O33": "reservations and limits are checked; nothing measures",
    "O44": "drawn as text",
    "O52": "no forecast",
    "O56": "quotas and limits are checked; no namespace for monitoring exists",
}
"""What the answers leave open, by statement; the others are answered in full."""


def statements() -> tuple[Statement, ...]:
    """Return all statements, in the order of the documents."""
    found: list[Statement] = []
    for line in _TEXTS.splitlines():
        number, section, text, *mark = line.split("|")
        found.append(Statement(number, section, text, bool(mark)))
    return tuple(found)
