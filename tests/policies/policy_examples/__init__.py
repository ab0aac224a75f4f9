"""Examples of every rule, passing and failing, built from real SDK resources."""
