"""What a record means: findings, differences, access and cost of a rehearsed stack.

Everything here reads a record and nothing else, so that what is reviewed is what
is deployed.
"""
