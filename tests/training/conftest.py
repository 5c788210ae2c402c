import pytest
import small_acf

collect_ignore = ["conftest.py"]  # of no use to doctest, which would find its name taken by the other folders' ones


@pytest.fixture
def small(monkeypatch):
    """The quick preset is tiny, and there is a method `toy`."""
    small_acf.install(monkeypatch)
