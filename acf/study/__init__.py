"""Whole experiments."""
