"""The checks that need the planner: repair before improvement, replica list changes before moves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from ballast.core.catalogue import Message, Messages, Said
from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.plan.log_dirs import warnings
from ballast.core.planner import Balance, Evacuate, Intent, Leaders, Loads, Racks, plan
from ballast.core.planner.place import kafka_placement_intent
from ballast.daemon.acting.answers import answer
from ballast.daemon.acting.journal_view import JournalReader
from ballast.daemon.acting.plan_views import outline
from ballast.daemon.acting.propose import Proposals
from ballast.daemon.acting.runs import Runs
from ballast.daemon.context.access import Access
from ballast.daemon.context.view import BalanceView, Board, Role
from ballast.daemon.observing.reading import Reading
from ballast.daemon.planning import bounds
from ballast.daemon.planning.background import InBackground, Made
from ballast.daemon.planning.notes import NAMED, note
from ballast.daemon.policy import ActionKind, LivePolicy, Mode
from ballast.errors import NoPlanFound, Unavailable, UsageError
from ballast.ports.time import Clock

_RACKLESS = 2
"""Fewer racks than this cannot be spread over."""


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

    def check(self) -> Said:
        """Is the load within its ranges?  If not: replica list changes, which copy nothing, and only when they do not suffice, moves."""
        state = self.reading.fresh()
        if run := self.runs.in_flight():
            return answer("no-planning", run=run)
        down = sorted(state.missing)
        if down:
            self.proposals.withdraw(ActionKind.REPLICA_LIST_CHANGES)
            self.proposals.withdraw(ActionKind.MOVES)
            self.board.publish(balance=BalanceView())
            return note("repair-first", brokers=down)
        list_changes_plan = self.plans.make(state, Leaders())
        said: list[Message] = []
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
            obstacle = next(iter(moves_plan.obstacles), None)
            said.append(note("no-plan-found", obstacle=obstacle) if obstacle else note("balanced"))
        # Brokers that were to be drained.
        empty = [b for b in self.reading.balance.draining & state.alive if not (state.partitions.replica == b).any()]
        emptied = [note("emptied", brokers=sorted(empty))] if empty else []
        return Messages((*said, *warnings(moves_plan), *emptied))

    def _conclude(self, moves_plan: Plan, proposed: list[Message]) -> None:
        """Show what the check found, in one word and one sentence; nothing where a run began meanwhile: its end brings the next check."""
        began = self.runs.end_pending or self.runs.in_flight()
        if began or self.reading.age_s() is None:
            return
        if proposed:
            balance = BalanceView(verdict="unbalanced", detail=f"Proposed plan: {outline(moves_plan)}.")
        elif moves_plan.obstacles:
            balance = BalanceView(verdict="no-plan-found", detail=f"{moves_plan.obstacles[0].detail}.")
        else:
            balance = BalanceView(verdict="balanced", detail=str(note("balanced")))
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

    def check(self) -> Said:
        """What slows replicas down by our own doing is removed first; then whatever else is broken is repaired."""
        state = self.reading.fresh()
        return Messages((*self._restore_throttles(state), *self._repair(state)))

    def _restore_throttles(self, state: ClusterState) -> list[Message]:
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
        return [note("removing-throttles", settings=tuple(map(str, due[:NAMED])), more=len(due[NAMED:]))]

    def _repair(self, state: ClusterState) -> list[Message]:
        """Are brokers gone for good, log dirs of live ones failed, or partitions without a rack for each replica?"""
        grace_s = self.policy.now.guards.down_broker_grace_s
        now_s = self.clock.monotonic_s()
        gone = self.reading.presence.down.since_s
        down = self.reading.presence.down.lasting(grace_s, now_s)
        # What a person approved does not wait for the rest of a rack.
        held = {} if ActionKind.REPAIR in self.proposals.approved else self.reading.held_brokers()
        waits = self.reading.list_held(down) if held else ()
        said: list[Message] = [note("down-too-long", brokers=sorted(down), grace_s=grace_s)]
        if waits:
            said.append(answer("held", held=waits))
        if due := down - held.keys():
            made = self.plans.make(state, Evacuate(brokers=due, keep_racks=True))
            return [*said, *self._propose_rebuild(state, made)]
        if down:
            self.proposals.withdraw(ActionKind.REPAIR)
            return said
        if gone:
            self.proposals.withdraw(ActionKind.REPAIR)
            broker, since = max(gone.items(), key=lambda item: item[1])
            _, held_until_s = held.get(broker, (broker, 0.0))
            left_s = max(since + grace_s, held_until_s) - now_s
            return [note("down", self._rebuilds_itself(), broker=broker, left_s=left_s)]
        if self.reading.failed_disks.since_s:
            return self._rebuild_offline(state)
        return self._replace_lists(state)

    def _rebuilds_itself(self) -> str:
        """``auto`` where replicas are rebuilt once their grace is over, empty where a plan for it is proposed."""
        mode = self.policy.now.mode_of(ActionKind.REPAIR)
        return mode.value if mode is Mode.AUTO else ""

    def _propose_rebuild(self, state: ClusterState, made: Plan, gone: Collection[int] | None = None) -> list[Message]:
        """Propose the plan that rebuilds replicas of brokers that are ``gone``, or say why it holds nothing to do."""
        if made.is_empty:
            self.proposals.withdraw(ActionKind.REPAIR)
            return [note("obstacle", obstacle=o) for o in made.obstacles[:1]] or [note("nothing-to-rebuild")]
        said = self._propose(state, made, gone)
        return [said, *(note("not-rebuilt", obstacle=o) for o in made.obstacles[:1])]

    def _rebuild_offline(self, state: ClusterState) -> list[Message]:
        """Rebuild on other brokers what lies on failed log dirs of live ones, once the disk was not replaced in time."""
        failed, grace_s = self.reading.failed_disks, self.policy.now.guards.down_broker_grace_s
        now_s = self.clock.monotonic_s()
        headline = note("offline", brokers=sorted(failed.since_s))
        due = failed.lasting(grace_s, now_s)
        if not due:
            self.proposals.withdraw(ActionKind.REPAIR)
            left_s = grace_s - (now_s - min(failed.since_s.values()))
            return [headline, note("disk-grace", self._rebuilds_itself(), left_s=left_s)]
        # One broker at a time: of partitions that have lost a replica on it, those on other failing brokers stay.
        made = self.plans.make(state, Evacuate(brokers=frozenset({min(due)}), keep_racks=True, offline_only=True))
        return [headline, *self._propose_rebuild(state, made, failed.since_s)]

    def _replace_lists(self, state: ClusterState) -> list[Message]:
        """Lists that are not as racks, or the rule of a topic to follow Kafka's placement, want them."""
        racks = {b.rack for b in state.brokers if b.rack is not None}
        if len(racks) >= _RACKLESS:
            made = self.plans.make(state, Racks())
            if made.moves:
                return [note("not-rack-aware"), self._propose(state, made)]
        wanted, refusals = kafka_placement_intent(state, self.reading.balance)
        refused = _list_unplaced(refusals)
        if wanted is not None:
            try:
                made = self.plans.make(state, wanted)
                if made.moves:
                    return [note("not-as-kafka-places"), self._propose(state, made), *refused]
            except (NoPlanFound, UsageError) as refusal:
                refused = _list_unplaced((refusal.message, *refusals))
        self.proposals.withdraw(ActionKind.REPAIR)
        return [note("nothing-to-repair"), *refused]

    def _propose(self, state: ClusterState, made: Plan, gone: Collection[int] | None = None) -> Message:
        """Propose a repair, with what makes it wait for a person's approval; ``gone`` are the brokers that are missed where none are given."""
        missed = self.reading.presence.down.since_s if gone is None else gone
        objections = bounds.list_objections(self.policy.now.repair, state, missed, made)
        return self.proposals.propose(ActionKind.REPAIR, made, objections)


def _list_unplaced(refusals: Sequence[str]) -> list[Message]:
    """Topics whose rule asks for Kafka's placement, and why they do not get it."""
    return [note("placement-kept", refusals=tuple(refusals[:NAMED]), more=len(refusals[NAMED:]))] if refusals else []
