"""The Kubernetes side of a cell, the same on every cloud.

From a :class:`~runfleet.placement.plan.CellPlan` and the cluster's Kubernetes
provider, :class:`~runfleet.runners.runners.Runners` makes what runs jobs: two
namespaces per runner class, one scale set, one job pod template, and what keeps them
apart. Everything is an individual Kubernetes resource, so that reviews, policies and
differences see it; only controllers are charts.

One idea per module: :mod:`~runfleet.runners.scheduling` says which nodes take which
pods, :mod:`~runfleet.runners.tenancy` holds namespaces, quotas and priorities,
:mod:`~runfleet.runners.isolation` network policies,
:mod:`~runfleet.runners.admission` what job pods may be,
:mod:`~runfleet.runners.access` accounts and roles,
:mod:`~runfleet.runners.scale_sets` runners, :mod:`~runfleet.runners.job_pods` jobs,
:mod:`~runfleet.runners.secrets` the GitHub App's key,
:mod:`~runfleet.runners.devices` accelerators,
:mod:`~runfleet.runners.controllers` the charts and
:mod:`~runfleet.runners.registration` GitHub's runner groups.
"""
