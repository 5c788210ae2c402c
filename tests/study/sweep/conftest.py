import pytest
import small_acf

# Of no use to doctest, which would find the name taken by the other folders, and would take in the toy method for good.
collect_ignore = ["conftest.py", "workers"]


@pytest.fixture
def small(monkeypatch):
    """The quick preset is tiny, and there is a method `toy`."""
    small_acf.install(monkeypatch)
