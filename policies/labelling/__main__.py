"""The labelling pack: ``pulumi preview --policy-pack policies/labelling``."""

from runfleet_policies.pack import run
from runfleet_policies.rule import Pack

run(Pack.LABELLING)
