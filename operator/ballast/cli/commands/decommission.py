"""``ballast decommission``: take brokers away, from leadership to the word that they can be stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.commands.plan.options import seconds_of
from ballast.cli.journal_reading import heeding, read_drained
from ballast.cli.run_options import confirm, execution_options, lock_options, policy_from
from ballast.cli.run_screen import RUN_DOCUMENTS, say
from ballast.cli.tables import output_option, print_json
from ballast.core.wording import human_total
from ballast.errors import Incomplete, Infeasible

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState
    from ballast.core.plan import Plan
    from ballast.core.planner import PlannerPolicy
    from ballast.core.planner.retirement import Step

LOOK_S: Final = 2.0
"""Between looks while something else has to happen first."""
PATIENCE_S: Final = 600.0
"""How long moves of somebody else on these brokers are waited for."""
FREE_TRIES: Final = 3
"""Runs that may try to take leadership away before data goes all the same: reordering what nobody can lead helps nobody."""


@click.command()
@click.argument("brokers_", type=int, nargs=-1, required=True, metavar="BROKER…")
@click.option(
    "--follow",
    default="0s",
    show_default=True,
    metavar="TIME",
    help="Go on so long after they are empty: new topics may land on them until they are stopped.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@execution_options
@lock_options
@output_option(*RUN_DOCUMENTS, "Decommission")
@cluster_options
def decommission(
    *,
    brokers_: tuple[int, ...],
    follow: str,
    yes: bool,
    policy_options: Mapping[str, Any],
    journal: str | None,
    lock_wait: float,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Empty brokers so that they can be stopped: leadership away first (free), then data, then the word.

    Run it again after an interruption and it goes on where things are.  ballast plan decommission shows the cost only.
    """
    from ballast.cli.run_apply import finish_left, run_plan, show_pace
    from ballast.core.planner.retirement import Phase

    retiring = _Retiring(cluster, frozenset(brokers_), seconds_of(follow, "--follow"))
    execution = policy_from(policy_options)
    while True:
        with cluster.open() as opened:
            state = opened.cluster.snapshot()
            if retiring.drained is None:
                retiring.drained = read_drained(opened, state)
            step = retiring.look(state)
            if not retiring.asked and step.phase in {Phase.LEADERSHIP, Phase.DATA, Phase.WAITING}:
                if retiring.data is not None:
                    show_pace(opened.cluster, opened.cluster.snapshot(), retiring.data, execution, yes=yes)
                confirm(f"{retiring.outline} Carry it out?", yes=yes)
                retiring.begin()
                # An earlier life of this command may have left its run: a plan made beside it would fight with it.
                left = finish_left(
                    opened, command="ballast decommission", journal=journal, lock_wait_s=lock_wait, output=output
                )
                if left is not None:
                    return left
                continue
            if step.phase in {Phase.LEADERSHIP, Phase.DATA} and step.plan is not None:
                say(step.sentence)
                code = run_plan(
                    opened, step.plan, execution, command="ballast decommission", journal=journal, lock_wait_s=lock_wait,
                    output=output,
                )  # fmt: skip
                if code != 0:
                    return code
                continue
        if step.phase is Phase.STUCK:
            remedy = step.plan.obstacles[0].remedy if step.plan is not None and step.plan.obstacles else None
            raise Infeasible(step.sentence, hint=remedy or None)
        if retiring.wait(step):
            continue
        if output == "json":
            from ballast.cli.documents.runs import Decommission

            print_json(Decommission(brokers=sorted(brokers_)))
        else:
            click.echo(step.sentence)
        return 0


class _Retiring:
    """One decommission in progress: what has been tried, and since when there is nothing to do."""

    def __init__(self, cluster: ClusterOptions, brokers: frozenset[int], follow_s: float) -> None:
        self.brokers = brokers
        self.follow_s = follow_s
        self.policy: PlannerPolicy = cluster.settings().balance
        self.drained: frozenset[int] | None = None
        """Brokers that people drain, as the journal said at the first look."""
        self.asked = False
        self.outline = ""
        self.data: Plan | None = None
        """What is to be copied in all, by the first look."""
        self._free_tries = 0
        self._idle_since_s: float | None = None

    def begin(self) -> None:
        """A person has agreed; what was seen so far is looked at again."""
        self.asked = True
        self._free_tries = 0

    def look(self, state: ClusterState) -> Step:
        """The next step; the first look also tells the cost of all of it."""
        from ballast.core.planner.retirement import Phase, next_step

        policy = heeding(self.policy, self.drained or ())
        step = next_step(state, self.brokers, policy=policy, leadership=self._free_tries < FREE_TRIES)
        if not self.outline:
            self.outline = self._outline(state, step)
        # Data that has gone may have let somebody else lead: the next free step counts anew.
        self._free_tries = self._free_tries + 1 if step.phase is Phase.LEADERSHIP else 0
        if step.plan is not None:
            self._idle_since_s = None
        return step

    def _outline(self, state: ClusterState, step: Step) -> str:
        from ballast.core.planner.retirement import Phase, next_step

        data = step if step.phase is not Phase.LEADERSHIP else next_step(
            state, self.brokers, policy=heeding(self.policy, self.drained or ()), leadership=False
        )  # fmt: skip
        self.data = data.plan
        if data is step or data.plan is None:
            return step.sentence + self._bytes(step)
        return f"{step.sentence} Then {data.sentence[0].lower()}{data.sentence[1:]}{self._bytes(data)}"

    @staticmethod
    def _bytes(step: Step) -> str:
        plan = step.plan
        if plan is None or plan.known_bytes == 0:
            return ""
        return f" Copied: {human_total(plan.bytes_moved, plan.unknown_sizes)}."

    def wait(self, step: Step) -> bool:
        """Look again later?  Waits while there is a reason to; raises when it has lasted too long."""
        from ballast.core.planner.retirement import Phase

        now = time.monotonic()
        if self._idle_since_s is None:
            self._idle_since_s = now
            if step.phase is Phase.WAITING:
                say(f"{step.sentence} Waiting for it to end.")
            elif self.follow_s:
                say(f"{step.sentence} Following what lands on it for another {self.follow_s:.0f} s.")
        waited = now - self._idle_since_s
        if step.phase is Phase.WAITING:
            if waited >= PATIENCE_S:
                raise Incomplete(step.sentence, hint="Run it again when these moves have ended.")
        elif waited >= self.follow_s:
            return False
        time.sleep(LOOK_S)
        return True
