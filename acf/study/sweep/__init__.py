"""Random search over a method's hyperparameters: samples and seeds as populations, selected on validation episodes.

- `search`: the whole of it.
- `plan`: what is asked, checked and written down.
- `samples`, `tpe`: which settings are tried, and which of them train together.
- `selection`: the data that the search may see, kept apart from the test episodes.
- `population`, `go_on`: one population trained and scored; a pruned search's second half.
- `objectives`: how good a sample is.
- `ledger`: the optuna study. `on_ray`: the same work on many machines. `winner`: what comes out.
"""

from acf.study.sweep.search import Sweep, sweep

__all__ = ["Sweep", "sweep"]
