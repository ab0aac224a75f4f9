"""Tables of derived ids and outputs, one module per provider package."""
