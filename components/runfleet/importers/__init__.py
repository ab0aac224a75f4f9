"""Importers: other systems' fleet definitions become a fleet file, and back."""
