"""How a run ended, as a value for people and scripts: what the run itself says, nothing that needs a port."""

from __future__ import annotations

from ballast.executor.driver.events import Ending, RunResult
from ballast.executor.machine.progress import total_of
from ballast.executor.machine.run import FINAL, IN_FLIGHT, ElectionStage, Run, Stage


def summary(run: Run, status: str, seconds: float) -> RunResult:
    """The result of a run in this state."""
    moves = list(run.moves.values())
    endings = [
        Ending(str(m.move.name), m.outcome or m.stage.value, m.detail)
        for m in moves
        if m.stage is not Stage.VERIFIED and (m.stage in FINAL or m.stage in IN_FLIGHT)
    ]
    endings += [
        Ending(f"election of {n}", e.stage.value, e.detail)
        for n, e in run.elections.items()
        if e.stage is not ElectionStage.HELD
    ]
    return RunResult(
        run_id=run.id,
        status=status,
        verified=sum(m.stage is Stage.VERIFIED for m in moves),
        rolled_back=sum(m.stage is Stage.ROLLED_BACK for m in moves),
        failed=sum(m.stage is Stage.FAILED for m in moves),
        left=sum(m.stage not in FINAL for m in moves),
        unclean=run.unclean,
        elections_held=sum(e.stage is ElectionStage.HELD for e in run.elections.values()),
        bytes_moved=total_of(m for m in moves if m.stage is Stage.VERIFIED and m.outcome != "already-there"),
        seconds=seconds,
        endings=tuple(endings),
        rollback_wanted=run.rollback_when_cancelled,
    )
