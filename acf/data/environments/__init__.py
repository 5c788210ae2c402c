"""Data from Gymnasium environments: opened by name or given, looked at as pictures, stepped into blocks."""

from acf.data.environments.collect import Asked, collect_environment
from acf.data.environments.opening import is_environment

__all__ = ["Asked", "collect_environment", "is_environment"]
