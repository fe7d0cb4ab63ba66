"""The checks that need the planner: repair before improvement, replica list changes before moves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.plan.log_dirs import warnings
from ballast.core.planner import Balance, Evacuate, Intent, Leaders, Loads, Racks, plan
from ballast.core.planner.place import kafka_placement_intent
from ballast.core.wording import human_brokers, human_time
from ballast.daemon.acting.journal_view import JournalReader
from ballast.daemon.acting.plan_views import outline
from ballast.daemon.acting.propose import Proposals
from ballast.daemon.acting.runs import Runs
from ballast.daemon.context.access import Access
from ballast.daemon.context.view import BalanceView, Board, Role
from ballast.daemon.observing.reading import Reading
from ballast.daemon.planning import bounds
from ballast.daemon.planning.background import InBackground, Made
from ballast.daemon.policy import ActionKind, LivePolicy, Mode
from ballast.errors import NoPlanFound, Unavailable, UsageError
from ballast.ports.time import Clock

_RACKLESS = 2
"""Fewer racks than this cannot be spread over."""
_NAMED = 4
"""Throttles that a sentence names."""


@dataclass(slots=True)
class PlanMaker:
    """Makes one plan at a time, by the settings in force."""

    clock: Clock
    reading: Reading
    loads: Callable[[ClusterState], Loads | None]
    """Loads from history; None where there is none yet: then plans go by what the reading itself says."""
    in_background: InBackground
    look_again: Callable[[], None]

    def make(self, state: ClusterState, intent: Intent) -> Plan:
        """One plan from a reading, by the settings in force; raises ``Unavailable`` where brokers came or went, or all of them, meanwhile."""
        policy = self.reading.balance

        def compute() -> Made:
            loads = self.loads(state)
            return loads, plan(state, intent, loads=loads, policy=policy)

        loads, made = self.in_background(compute)
        if self.reading.fresh().alive != state.alive:
            self.look_again()
            raise Unavailable("A broker came or went while this was planned: the plan is dropped.")
        self.reading.note_loads(state, loads)
        return replace(made, created_at_ms=self.clock.now_ms(), summary={**made.summary, "outline": outline(made)})


@dataclass(frozen=True, slots=True)
class BalanceCheck:
    """Replica list changes, which copy nothing, and only when they do not suffice, moves."""

    board: Board
    reading: Reading
    runs: Runs
    proposals: Proposals
    plans: PlanMaker

    def check(self) -> str:
        """Is the load within its ranges?  If not: replica list changes, which copy nothing, and only when they do not suffice, moves."""
        state = self.reading.fresh()
        if run := self.runs.in_flight():
            return f"No planning while run {run} is in progress."
        down = sorted(state.missing)
        if down:
            self.proposals.withdraw(ActionKind.REPLICA_LIST_CHANGES)
            self.proposals.withdraw(ActionKind.MOVES)
            self.board.publish(balance=BalanceView())
            return f"No balancing while {human_brokers(down)} {_is_or_are(down)} down: repair comes first."
        list_changes_plan = self.plans.make(state, Leaders())
        said = []
        if list_changes_plan.moves:
            said.append(self.proposals.propose(ActionKind.REPLICA_LIST_CHANGES, list_changes_plan))
        else:
            self.proposals.withdraw(ActionKind.REPLICA_LIST_CHANGES)
        moves_plan = self.plans.make(state, Balance())
        if any(m.adding for m in moves_plan.moves):
            said.append(self.proposals.propose(ActionKind.MOVES, moves_plan))
        else:
            self.proposals.withdraw(ActionKind.MOVES)
        self._conclude(moves_plan, said)
        if not said:
            balance = (
                f"Out of range, and no better plan was found: {moves_plan.obstacles[0].detail}."
                if moves_plan.obstacles
                else "Every resource is within its range."
            )
            said.append(balance)
        broken = [told for told, _ in warnings(moves_plan)]
        return " ".join([*said, *broken, *self._say_emptied(state)])

    def _say_emptied(self, state: ClusterState) -> list[str]:
        """Say of brokers that were to be drained that they are."""
        empty = sorted(
            b for b in self.reading.balance.draining & state.alive if not (state.partitions.replica == b).any()
        )
        if not empty:
            return []
        return [f"{human_brokers(empty, start=True)} {_is_or_are(empty)} empty and may be stopped."]

    def _conclude(self, moves_plan: Plan, proposed: list[str]) -> None:
        """Show what the check found, in one word and one sentence; nothing where a run began meanwhile: its end brings the next check."""
        began = self.runs.end_pending or self.runs.in_flight()
        if began or self.reading.age_s() is None:
            return
        if proposed:
            balance = BalanceView(verdict="unbalanced", detail=f"Proposed plan: {outline(moves_plan)}.")
        elif moves_plan.obstacles:
            balance = BalanceView(verdict="no-plan-found", detail=f"{moves_plan.obstacles[0].detail}.")
        else:
            balance = BalanceView(verdict="balanced", detail="Every resource is within its range.")
        self.board.publish(balance=balance)


@dataclass(frozen=True, slots=True)
class RepairCheck:
    """Throttles of our own that slow replicas down, brokers and log dirs that are gone, racks, Kafka's placement."""

    clock: Clock
    board: Board
    policy: LivePolicy
    reading: Reading
    access: Access
    journal: JournalReader
    proposals: Proposals
    plans: PlanMaker

    def check(self) -> str:
        """What slows replicas down by our own doing is removed first; then whatever else is broken is repaired."""
        state = self.reading.fresh()
        return " ".join([*self._restore_throttles(state), self._repair(state)])

    def _restore_throttles(self, state: ClusterState) -> list[str]:
        """Restore throttles that an ended run could not restore, most often because their broker was down, as soon as that can be done.

        A broker that returns under such a throttle catches up slowly, or never.  This is no action that a mode or a window could
        forbid: it ends one that was permitted.
        """
        if (
            self.access.run_controller is None
            or self.board.view.role is not Role.ACTIVE
            or self.access.run_controller.current() is not None
        ):
            return []
        due = [
            d
            for d in self.journal.view.throttles_to_restore
            if d.kind != "broker" or not d.name or int(d.name) in state.alive
        ]
        if not due:
            return []
        self.access.run_controller.adopt()
        return [f"Removing throttles of an earlier run: {', '.join(map(str, due[:_NAMED]))}."]

    def _repair(self, state: ClusterState) -> str:
        """Are brokers gone for good, log dirs of live ones failed, or partitions without a rack for each replica?"""
        grace_s = self.policy.now.guards.down_broker_grace_s
        now_s = self.clock.monotonic_s()
        gone = self.reading.presence.down.since_s
        down = self.reading.presence.down.lasting(grace_s, now_s)
        # What a person approved does not wait for the rest of a rack.
        held = {} if ActionKind.REPAIR in self.proposals.approved else self.reading.held_brokers()
        waits = "" if not held else self.reading.held_reason(down)
        have = "has" if len(down) == 1 else "have"
        headline = f"{human_brokers(sorted(down), start=True)} {have} been down for longer than {human_time(grace_s)}."
        if due := down - held.keys():
            headline = f"{headline} {waits}".rstrip()
            made = self.plans.make(state, Evacuate(brokers=due, keep_racks=True))
            return f"{headline} {self._propose_rebuild(state, made)}"
        if down:
            self.proposals.withdraw(ActionKind.REPAIR)
            return f"{headline} {waits}".rstrip()
        if gone:
            self.proposals.withdraw(ActionKind.REPAIR)
            broker, since = max(gone.items(), key=lambda item: item[1])
            _, held_until_s = held.get(broker, (broker, 0.0))
            left_s = max(since + grace_s, held_until_s) - now_s
            follows = self._say_what_follows("its replicas", "its replicas")
            return f"Broker {broker} is down; it has {human_time(left_s)} to return before {follows}."
        if self.reading.failed_disks.since_s:
            return self._rebuild_offline(state)
        return self._replace_lists(state)

    def _say_what_follows(self, they: str, them: str) -> str:
        """What comes of replicas once their grace is over, by the mode of repairs."""
        if self.policy.now.mode_of(ActionKind.REPAIR) is Mode.AUTO:
            return f"{they} are rebuilt elsewhere"
        return f"a plan to rebuild {them} elsewhere is proposed"

    def _propose_rebuild(self, state: ClusterState, made: Plan, gone: Collection[int] | None = None) -> str:
        """Propose the plan that rebuilds replicas of brokers that are ``gone``, or say why it holds nothing to do."""
        if made.is_empty:
            self.proposals.withdraw(ActionKind.REPAIR)
            return next((f"{o.subject}: {o.detail}." for o in made.obstacles), "There is nothing to rebuild.")
        said = self._propose(state, made, gone)
        kept = f" Not rebuilt: {made.obstacles[0].subject}: {made.obstacles[0].detail}." if made.obstacles else ""
        return f"{said}{kept}"

    def _rebuild_offline(self, state: ClusterState) -> str:
        """Rebuild on other brokers what lies on failed log dirs of live ones, once the disk was not replaced in time."""
        failed, grace_s = self.reading.failed_disks, self.policy.now.guards.down_broker_grace_s
        now_s = self.clock.monotonic_s()
        named = human_brokers(sorted(failed.since_s))
        headline = f"Replicas of {named} are offline since a log dir failed."
        due = failed.lasting(grace_s, now_s)
        if not due:
            self.proposals.withdraw(ActionKind.REPAIR)
            left_s = grace_s - (now_s - min(failed.since_s.values()))
            follows = self._say_what_follows("they", "them").capitalize()
            return f"{headline} {follows} unless the disk is replaced within {human_time(left_s)}."
        # One broker at a time: of partitions that have lost a replica on it, those on other failing brokers stay.
        made = self.plans.make(state, Evacuate(brokers=frozenset({min(due)}), keep_racks=True, offline_only=True))
        return f"{headline} {self._propose_rebuild(state, made, failed.since_s)}"

    def _replace_lists(self, state: ClusterState) -> str:
        """Lists that are not as racks, or the rule of a topic to follow Kafka's placement, want them."""
        racks = {b.rack for b in state.brokers if b.rack is not None}
        if len(racks) >= _RACKLESS:
            made = self.plans.make(state, Racks())
            if made.moves:
                return f"Replica placement is not rack-aware. {self._propose(state, made)}"
        wanted, refusals = kafka_placement_intent(state, self.reading.balance)
        refused = _explain_unplaced(refusals)
        if wanted is not None:
            try:
                made = self.plans.make(state, wanted)
                if made.moves:
                    return f"Topics do not follow Kafka's placement. {self._propose(state, made)}{refused}"
            except (NoPlanFound, UsageError) as refusal:
                refused = _explain_unplaced((refusal.message, *refusals))
        self.proposals.withdraw(ActionKind.REPAIR)
        return f"Nothing needs repair: every broker is alive and replica placement is rack-aware.{refused}"

    def _propose(self, state: ClusterState, made: Plan, gone: Collection[int] | None = None) -> str:
        """Propose a repair, with what makes it wait for a person's approval; ``gone`` are the brokers that are missed where none are given."""
        missed = self.reading.presence.down.since_s if gone is None else gone
        objections = bounds.list_objections(self.policy.now.repair, state, missed, made)
        return self.proposals.propose(ActionKind.REPAIR, made, objections)


def _explain_unplaced(refusals: Sequence[str]) -> str:
    """Topics whose rule asks for Kafka's placement, and why they do not get it."""
    if not refusals:
        return ""
    more = f" And {len(refusals) - _NAMED} more." if len(refusals) > _NAMED else ""
    return f" Topics that are to follow Kafka's placement stay as they are: {' '.join(refusals[:_NAMED])}{more}"


def _is_or_are(brokers: Sequence[int]) -> str:
    return "is" if len(brokers) == 1 else "are"
