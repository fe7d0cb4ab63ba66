"""How a run ended, as a value for people and scripts: what the run itself says, nothing that needs a port."""

from __future__ import annotations

from ballast.core.plan.work import work_of
from ballast.executor.driver.events import Ending, RunResult
from ballast.executor.machine.progress import total_of
from ballast.executor.machine.run import ElectionStage, Run
from ballast.executor.machine.stages import Ended, Failed, InFlight, RolledBack, Verified


def summary(run: Run, status: str, seconds: float) -> RunResult:
    """The result of a run in this state."""
    verified = run.moves_in(Verified)
    endings = [
        Ending(str(m.move.name), m.outcome or m.stage.code, m.note) for m in run.moves_in(Failed, RolledBack, InFlight)
    ]
    endings += [
        Ending(f"election of {n}", e.stage.value, e.note)
        for n, e in run.elections.items()
        if e.stage is not ElectionStage.COMPLETED
    ]
    return RunResult(
        run_id=run.id,
        status=status,
        verified=len(verified),
        work=work_of(m.move for m in verified if not m.found_in_place),
        rolled_back=len(run.moves_in(RolledBack)),
        failed=len(run.moves_in(Failed)),
        still_open=len(run.moves) - len(run.moves_in(Ended)),
        unclean=run.unclean,
        elections_completed=sum(e.stage is ElectionStage.COMPLETED for e in run.elections.values()),
        bytes_moved=total_of(verified),
        seconds=seconds,
        endings=tuple(endings),
        rollback_wanted=run.rollback_when_cancelled,
    )
