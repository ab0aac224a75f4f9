"""In-memory clouds that refuse what the real ones would refuse."""
