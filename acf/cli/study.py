"""`acf study`: many runs, as a file describes them, to one page."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Study:
    """Train, evaluate and report a whole study; the same command again does what is missing."""

    study: tyro.conf.Positional[str]
    """paper (the paper's experiments), smoke (all methods, tiny: a trial of the machinery), or a TOML file."""
    out: Path | None = None
    """Directory of the study [default: results/STUDY]. What a record in it (DOMAIN-METHOD.json) holds is done, with or
    without its run directory: machines that share a study copy their records together."""
    domains: tuple[str, ...] = ()
    """Only these domains of the study."""
    methods: tuple[str, ...] = ()
    """Only these methods of the study."""
    time_limit: float | None = None
    """Minutes after which no training is begun, and one in progress is saved and stopped [default: none]."""
    report: bool = False
    """Only draw the report of what is there."""
    adopt: tuple[Path, ...] = ()
    """Train nothing; make records of these finished run directories, trained elsewhere with the study's settings."""

    def run(self) -> None:
        from acf.errors import AcfError
        from acf.study.plan import read_study
        from acf.study.study_report import report_study
        from acf.terminal import console, status

        if self.report and self.adopt:
            raise AcfError("expected --report or --adopt, got both: --adopt draws the report too")
        if self.report and (self.domains or self.methods or self.time_limit is not None):
            raise AcfError("--report draws the whole study: leave out --domains, --methods and --time-limit")
        study = read_study(self.study)
        out = self.out or Path("results") / Path(self.study).stem
        if self.adopt:
            self._adopt(study, out)
        elif not self.report and not self._work(study, out):
            return  # nothing to report yet
        with status("drawing the report"):
            readme, page = report_study(study, out)
        console.print(f"wrote {readme}, {page} and their figures as PNG and CSV in {out / 'figures'}", soft_wrap=True)
        console.print(f"Open [bold]{page}[/] in a browser", soft_wrap=True)

    def _adopt(self, study, out: Path) -> None:
        from acf.study.work import adopt
        from acf.terminal import console

        for run, name in zip(self.adopt, adopt(study, out, self.adopt), strict=True):
            console.print(f"recorded {run} as {out / name}.json", soft_wrap=True)

    def _work(self, study, out: Path) -> bool:
        """Whether there is a record."""
        import math

        from acf.study.work import run_study
        from acf.terminal import console

        minutes = math.inf if self.time_limit is None else self.time_limit
        outcome = run_study(study, out, domains=self.domains, methods=self.methods, minutes=minutes)
        for name in outcome.done:
            console.print(f"recorded {out / name}.json", soft_wrap=True)
        if not outcome.done:
            console.print("nothing new to record", soft_wrap=True)
        total, missing = len(study.cells()), len(outcome.missing)
        again = "; the same command goes on" if missing else ""
        console.print(f"{total - missing} of {total} trials are done{again}", soft_wrap=True)
        return missing < total
