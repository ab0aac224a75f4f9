"""The security pack: ``pulumi preview --policy-pack policies/security``."""

from runfleet_policies.pack import run
from runfleet_policies.rule import Pack

run(Pack.SECURITY)
