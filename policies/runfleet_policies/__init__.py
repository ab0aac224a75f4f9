"""The rules for CI runner fleets, and the engine that applies them.

One set of rule objects serves three callers: ``runfleet rehearse`` and
``runfleet review`` judge the resources of a record with
:func:`runfleet_policies.engine.evaluate`; ``runfleet check`` judges a fleet file
with :func:`runfleet_policies.engine.evaluate_fleet`; and the packs under
``policies/`` give the same rules to Pulumi's engine through
:mod:`runfleet_policies.pack`. Importing this package imports no Pulumi.
"""
