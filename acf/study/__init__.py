"""Whole experiments: collect, train, evaluate and report in one go."""

from acf.study.evaluate import evaluate_run, read_scores


def __getattr__(name: str):
    # Pictures only where they are asked for: matplotlib takes a while to load.
    if name == "report_runs":
        from acf.study.report import report_runs

        return report_runs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["evaluate_run", "read_scores", "report_runs"]  # pyright: ignore[reportUnsupportedDunderAll]
