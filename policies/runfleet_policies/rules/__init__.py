"""The rules, one module per family; each has a function ``rules()``."""
