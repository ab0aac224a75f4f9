"""The cost pack: ``pulumi preview --policy-pack policies/cost``."""

from runfleet_policies.pack import run
from runfleet_policies.rule import Pack

run(Pack.COST)
