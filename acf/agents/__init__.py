"""Agents that know the world by its factors, and those that do not, to compare them with."""
