"""Rehearsal: run the real stack program without a cloud account, and record it.

The program of a stack runs unchanged, under the Pulumi SDK's own mock monitor
instead of the Pulumi engine. Every resource that it registers is kept whole in a
*record* (:mod:`runfleet.rehearsal.record`), which is the input of policies,
differences, cost and access reports: what is reviewed is what is deployed.

The modules, from the bottom up:

- :mod:`~runfleet.rehearsal.values`: the marks for secrets and unknown values;
- :mod:`~runfleet.rehearsal.record`: the record and its file;
- :mod:`~runfleet.rehearsal.compare`: the difference of two records;
- :mod:`~runfleet.rehearsal.settings`: project and stack settings files;
- :mod:`~runfleet.rehearsal.outputs` with ``providers``: ids and outputs derived
  from URN and inputs;
- ``emulators``: the resources created for real in an in-memory cloud, which
  refuses what the cloud would refuse;
- :mod:`~runfleet.rehearsal.monitor`: the monitor that records;
- :mod:`~runfleet.rehearsal.runner`: one rehearsal in this process;
- :mod:`~runfleet.rehearsal.worker` and :mod:`~runfleet.rehearsal.stacks`: several
  stacks, each in a process of its own.

Importing this package, the record, the comparison and the settings needs neither
Pulumi nor a cloud SDK; ``monitor``, ``outputs`` and ``runner`` import Pulumi.
"""
