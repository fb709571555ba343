"""The decision loop as an HTTP service."""
