"""`acf report`: finished runs to a page."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Report:
    """Draw finished runs as one HTML page that needs no network, and every figure of it as PNG and CSV."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories; those not evaluated yet are evaluated."""
    out: Path | None = None
    """The page [default: RUN/report.html for one run, report.html for several]."""

    def run(self) -> None:
        from acf.errors import AcfError
        from acf.study.report import REPORT, figures_folder, report_runs
        from acf.terminal import console, status

        if not self.runs:
            raise AcfError("expected at least one run directory: acf report RUN...")
        out = self.out or (self.runs[0] / REPORT if len(self.runs) == 1 else Path(REPORT))
        with status(f"drawing {out}"):
            report_runs(self.runs, out)
        console.print(f"wrote {out}, and its figures as PNG and CSV in {figures_folder(out)}", soft_wrap=True)
        console.print(f"Open [bold]{out}[/] in a browser", soft_wrap=True)
