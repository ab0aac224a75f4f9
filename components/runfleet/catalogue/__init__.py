"""Tables of facts: machines, prices, pins. Each row carries its source and date."""
