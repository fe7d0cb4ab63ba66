"""Judges the figures of a plan: bands reached, sums told, nothing made worse, promises kept.

The second half of the checker, and like the first it imports nothing of the search: it counts replica lists by itself,
computes every broker's fair share from its definition in ``docs/planning.md`` (by its own method), and compares with what the
plan claims.  The loads' columns come from ``goals``, which say what a resource is, not how it is balanced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import ClusterState, Flags, Ints
from ballast.core.plan import Plan
from ballast.core.planner.checker.finding import Finding
from ballast.core.planner.checker.shares import DIGITS, TopicSplit, most_on_racks, rise
from ballast.core.planner.checker.topics import TopicJudge
from ballast.core.planner.goals import Resource, resources
from ballast.core.planner.intents import Balance, Expand, Intent, Leaders
from ballast.core.planner.loads import DISK, Loads
from ballast.core.planner.policy import PlannerPolicy

Floats = npt.NDArray[np.float64]

ROUNDING: Final = 1e-6
"""Part of a share by which the end of a range may differ: shares are not whole, and each side finds them its own way."""
ALIKE: Final = 1e-12
"""Part of an average share by which the two sides' sums of fractions may differ."""
WORSE: Final = 1e-3
"""Excess, in shares of one broker, that is no regression: the search and this judge round bands differently."""


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Replica lists flattened: one entry for each replica."""

    row: Ints
    broker: Ints
    """Index into ``state.brokers``."""
    first: Flags

    @classmethod
    def before(cls, state: ClusterState) -> Lists:
        """What the cluster has, or is on its way to."""
        p = state.partitions
        kept = ~p.removing
        row = np.repeat(np.arange(len(p)), np.diff(p.start))[kept]
        ids = np.array([b.id for b in state.brokers], np.int64)
        return cls(row, np.searchsorted(ids, p.replica[kept]), _firsts(row))

    def after(self, state: ClusterState, plan: Plan) -> Lists:
        """What it has when every move is made."""
        moves = [(state.index[m.name], m.new) for m in plan.moves]
        moved = np.zeros(len(state.partitions), np.bool_)
        moved[[row for row, _ in moves]] = True
        stay = ~moved[self.row]
        index = state.broker_index
        row = np.array([r for r, new in moves for _ in new], np.int64)
        broker = np.array([index[b] for _, new in moves for b in new], np.int64)
        first = np.array([at == 0 for _, new in moves for at in range(len(new))], np.bool_)
        return Lists(
            np.concatenate((self.row[stay], row)),
            np.concatenate((self.broker[stay], broker)),
            np.concatenate((self.first[stay], first)),
        )

    def sums(self, r: Resource, brokers: int) -> Ints:
        """What each broker carries of a resource, exactly."""
        total = np.zeros(brokers, np.int64)
        np.add.at(total, self.broker, np.where(self.first, r.lead[self.row], r.follow[self.row]))
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """Which brokers take part in what, told from the intent and the policy alone."""

    shares: Flags
    takes: Flags
    rises: Flags
    """Could take replicas, whatever the intent gives them: their share is not what they hold."""
    leads: Flags
    leaves: Flags
    """Their replicas are to go, whatever it costs."""

    @classmethod
    def of(cls, state: ClusterState, intent: Intent, policy: PlannerPolicy) -> Members:
        """For ``balance``, ``leaders`` and ``expand``, the intents that promise bands."""
        filled = intent.brokers if isinstance(intent, Expand) else None

        def each(answer: Any) -> Flags:
            return np.array([answer(b) for b in state.brokers], np.bool_)

        chosen = each(lambda b: intent.selection.broker(b.id))
        draining = each(lambda b: b.id in policy.draining)
        alive = each(lambda b: b.alive)
        closed = each(lambda b: b.cordoned or b.id in policy.cordoned)
        asked = each(lambda b: filled is None or b.id in filled)
        barred = each(lambda b: b.id in policy.demoted)
        shares = alive & chosen & ~draining
        rises = shares & ~closed
        takes = rises & asked if not isinstance(intent, Leaders) else np.zeros(len(shares), np.bool_)
        leaves = (~alive | draining) & chosen if isinstance(intent, Balance) else np.zeros(len(shares), np.bool_)
        return cls(shares, takes, rises, shares & ~barred, leaves)


def judge_figures(
    state: ClusterState, plan: Plan, intent: Intent, *, loads: Loads, policy: PlannerPolicy, topics: TopicJudge
) -> list[Finding]:
    """Every figure of the plan that is wrong; the moves must be known to be sound."""
    before = Lists.before(state)
    after = before.after(state, plan)
    columns = resources(state, loads, policy)
    found = _costs(state, plan, loads)
    found += _claims(state, plan, columns, before, after)
    if isinstance(intent, Balance | Leaders):
        found += _bands(state, plan, intent, policy, columns, before, after, topics)
    if isinstance(intent, Expand):
        found += _find_overfilled(state, intent, policy, columns, before, after, topics)
    return found


# What it costs


def _costs(state: ClusterState, plan: Plan, loads: Loads) -> list[Finding]:
    found = []
    for m in plan.moves:
        row = state.index[m.name]
        untold = DISK not in loads.known or bool(loads.assumed[row : row + 1].any())
        size = -1 if untold else int(loads.size_bytes[row])
        if m.size_bytes != size:
            found.append(Finding("sum", str(m.name), f"is said to hold {m.size_bytes} bytes and holds {size}"))
    copied = sum(max(m.size_bytes, 0) * len(set(m.new) - set(m.old)) for m in plan.moves)
    untold = any(m.size_bytes < 0 and set(m.new) - set(m.old) for m in plan.moves)
    told = {
        "replica_moves": sum(len(m.adding) for m in plan.moves),
        "replica_list_changes": sum(set(m.old) == set(m.new) for m in plan.moves),
        "leader_changes": sum(m.old[0] != m.new[0] for m in plan.moves),
        "bytes_moved": None if untold else copied,
        "busiest_bytes": _busiest(state, plan),
    }
    for key, figure in told.items():
        if plan.summary.get(key) != figure:
            found.append(Finding("sum", "the plan", f"says {key} {plan.summary.get(key)}, and it is {figure}"))
    if plan.bound_bytes is not None and plan.bound_bytes > copied:
        text = f"claims that no plan moves less than {plan.bound_bytes} bytes, and moves {copied} itself"
        found.append(Finding("bound", "the plan", text))
    return found


def _busiest(state: ClusterState, plan: Plan) -> int | None:
    """The most bytes that one broker takes in, or hands to others as the leader that they fetch from."""
    through: dict[tuple[str, int], int] = {}
    for m in plan.moves:
        new = set(m.new) - set(m.old)
        if new and m.size_bytes < 0:
            return None
        leader = int(state.partitions.leader[state.index[m.name]])
        for end in [("in", b) for b in new] + [("out", leader)] * len(new):
            through[end] = through.get(end, 0) + m.size_bytes
    return max((size for (_, b), size in through.items() if b >= 0), default=0)


def _claims(state: ClusterState, plan: Plan, columns: Sequence[Resource], before: Lists, after: Lists) -> list[Finding]:
    """Before and after of each broker, as the summary tells them."""
    found = []
    told = {b["broker"]: b for b in plan.summary.get("brokers", [])}
    if set(told) != {b.id for b in state.brokers}:
        return [Finding("sum", "the plan", "names other brokers than the cluster has")]
    for r in columns:
        for side, lists in (("before", before), ("after", after)):
            sums = lists.sums(r, len(state.brokers))
            for i, b in enumerate(state.brokers):
                said = told[b.id][side].get(r.name)
                if said != sums[i]:
                    text = f"is said to carry {said} of {r.label} {side} the plan, and it is {sums[i]}"
                    found.append(Finding("sum", f"broker {b.id}", text))
    return found


# How balanced it is


def _bands(
    state: ClusterState,
    plan: Plan,
    intent: Intent,
    policy: PlannerPolicy,
    columns: Sequence[Resource],
    before: Lists,
    after: Lists,
    topics: TopicJudge,
) -> list[Finding]:
    members = Members.of(state, intent, policy)
    admitted = {o.subject for o in plan.obstacles if o.code == "band"}
    # A cluster within the wider band that triggers plans is left as it is.
    idle = not plan.moves
    found = []
    worse = 0.0
    broken = []
    for r in columns:
        if isinstance(intent, Leaders) and not bool((r.lead != r.follow).any()):
            continue
        share = fair_shares(state, intent, r, members, before, topics)
        band = r.tolerance(policy) if idle else r.aim(policy)
        low, high = limits(r, share, band, policy, members)
        past, sums = before.sums(r, len(share)), after.sums(r, len(share))
        mean = max(float(share[members.shares].mean()) if bool(members.shares.any()) else 0.0, 1.0)
        slack = ROUNDING * share + ALIKE * mean
        outside = np.flatnonzero((sums > high + slack) | (sums < low - slack))
        met = (past <= high) & (past >= low)
        broken += [(int(b), r.label) for b in np.flatnonzero(met & ((sums > high + slack) | (sums < low - slack)))]
        worse += float((_excess(sums, low, high) - _excess(past, low, high)).sum()) / mean
        if len(outside) and r.label not in admitted:
            b = int(outside[0])
            text = f"ends with {sums[b]:.0f} of {r.label}, its range is from {low[b]:.0f} to {high[b]:.0f}, and the plan does not admit it"
            found.append(Finding("band", f"broker {state.brokers[b].id}", text))
    forced = bool(broken or worse > WORSE) and _forced(state, plan, members, topics)
    if broken and not forced:
        b, label = broken[0]
        text = f"was within its range of {label} before the plan, and is not after it"
        found.append(Finding("regression", f"broker {state.brokers[b].id}", text))
    if not found and worse > WORSE and not forced:
        found.append(
            Finding("regression", "the plan", f"leaves brokers {worse:.3f} shares further outside their ranges")
        )
    return found


def _find_overfilled(
    state: ClusterState,
    intent: Expand,
    policy: PlannerPolicy,
    columns: Sequence[Resource],
    before: Lists,
    after: Lists,
    topics: TopicJudge,
) -> list[Finding]:
    """Brokers that are filled beyond the upper end of a range."""
    members = Members.of(state, intent, policy)
    found = []
    for r in columns:
        share = fair_shares(state, intent, r, members, before, topics)
        _, high = limits(r, share, r.aim(policy), policy, members)
        past, sums = before.sums(r, len(share)), after.sums(r, len(share))
        for i, b in enumerate(state.brokers):
            if b.id in intent.brokers and sums[i] > max(high[i], past[i]) + ROUNDING * share[i] + 1e-9:
                text = f"is filled with {sums[i]} of {r.label}, and its range ends at {high[i]:.0f}"
                found.append(Finding("band", f"broker {b.id}", text))
    return found


def _excess(sums: Ints, low: Floats, high: Floats) -> Floats:
    return np.asarray(np.maximum(sums - high, 0) + np.maximum(low - sums, 0))


def _forced(state: ClusterState, plan: Plan, members: Members, topics: TopicJudge) -> bool:
    """Repairs come before balance: a replica that must go, must stop leading, shares a rack or breaks a rule may cost some."""
    index = state.broker_index
    rack = {b.id: b.rack for b in state.brokers}
    for m in plan.moves:
        if any(members.leaves[index[b]] for b in m.old) or not members.leads[index[m.old[0]]]:
            return True
        before, after = (Counter(rack[b] for b in lst) for lst in (m.old, m.new))
        if max(before.values()) > max(after.values()) or topics.repairs(m):
            return True
    return False


def limits(r: Resource, share: Floats, band: float, policy: PlannerPolicy, members: Members) -> tuple[Floats, Floats]:
    """The band around each share: counts may always be either whole neighbour; a broker that takes nothing has no lower end."""
    if r.counted:
        high = np.maximum(np.floor(share * (1 + band) + 1e-9), np.ceil(share - 1e-9))
        low = np.minimum(np.ceil(share * (1 - band) - 1e-9), np.floor(share + 1e-9))
    else:
        width = np.maximum(share * band, policy.slack_of(r.name, band))
        low, high = np.maximum(share - width, 0.0), share + width
    used = members.shares & members.leads if r.leaders_only else members.shares
    can = members.takes | members.leads if r.leaders_only else members.takes
    return np.where(used & can, low, 0.0), np.where(used, high, np.inf)


def fair_shares(
    state: ClusterState, intent: Intent, r: Resource, members: Members, before: Lists, topics: TopicJudge
) -> Floats:
    """Each broker's part of the whole by capacity, as far as racks, closed brokers and topics' own rules allow."""
    brokers = len(state.brokers)
    active = members.shares & members.leads if r.leaders_only else members.shares
    weight = np.where(active, r.capacity, 0.0)
    present = before.sums(r, brokers)
    total = float(present[members.shares | members.leaves].sum())
    closed = np.zeros(brokers, np.bool_)
    if isinstance(intent, Balance | Expand) and not r.leaders_only:
        closed = active & ~members.rises
    most = np.where(closed, present, np.inf)
    if topics.rules:
        inside = (members.shares | members.leaves)[before.broker]
        figure = np.where(before.first, r.lead[before.row], r.follow[before.row]) * inside
        share = TopicSplit.of(state, r, before.row, before.broker, figure, topics).shares(weight, closed)
    else:
        share = pour(total, weight, most)
    if r.leaders_only:
        return share
    names = [b.rack for b in state.brokers]
    if not any(b.alive for b in state.brokers):
        return share
    alone = any(b.rack is None for b in state.brokers if b.alive)
    racks = sorted({n or "" for n in names}) if not alone else [str(b.id) for b in state.brokers]
    of = np.arange(brokers) if alone else np.array([racks.index(n or "") for n in names], np.int64)
    usable = len(np.unique(of[members.shares]))
    factor = np.bincount(before.row, minlength=len(state.partitions))
    limit = np.maximum(-(-factor // max(usable, 1)), 1)
    if alone:
        limit = np.ones_like(limit)
    for topic, rows in topics.rows.items() if not alone else ():
        # Where racks do not matter one may hold all of it.
        limit[rows] = np.maximum(-(-factor[rows] // (topics.racks(topic) or 1)), 1)
    fewest = _fewest_racks(state, intent, members, before, of, limit, topics)
    bound = most_on_racks(r, factor, limit, fewest, len(racks))
    by_rack = -np.sort(-np.bincount(of, weights=share))
    # Shares are rounded: together they may be a little more than there is.
    rounded = brokers * 10.0**-DIGITS
    if bool((np.cumsum(by_rack) <= bound[1:] * (1 + 1e-9) + rounded).all()):
        return share
    # Whom the topics' rules leave no share gets none by its rack.
    return rise(min(total, float(bound[-1])), np.where(share > 0, weight, 0.0), most, of, bound)


def _fewest_racks(
    state: ClusterState, intent: Intent, members: Members, before: Lists, of: Ints, limit: Ints, topics: TopicJudge
) -> Ints:
    """By partition: as many racks as hold it, as far as racks remain for it when what must go has gone."""
    if not bool((limit > 1).any()):
        return np.zeros_like(limit)
    kind, kept_off, matters = np.zeros(len(limit), np.int64), [np.zeros(len(of), np.bool_)], [True]
    kinds: dict[Any, int] = {}
    for topic, rows in topics.rows.items():
        rules = topics.rules[topic]
        if rules not in kinds:
            kinds[rules] = len(kept_off)
            kept_off.append(np.array([not topics.holds(topic, b.id) for b in state.brokers], np.bool_))
            matters.append(topics.racks(topic) != 0)
        kind[rows] = kinds[rules]
    barred = np.array(kept_off)
    remain = np.zeros((len(barred), int(of.max()) + 1), np.bool_)
    for k, off in enumerate(barred):
        remain[k, of[members.shares & ~off]] = True
    remain = remain[kind]
    held = np.zeros_like(remain)
    held[before.row, of[before.broker]] = True
    stays = ~members.leaves[before.broker]
    if isinstance(intent, Balance):
        chosen = np.array([intent.selection.broker(b.id) for b in state.brokers], np.bool_)
        stays &= ~(barred & chosen)[kind[before.row], before.broker]
    remain[before.row[stays], of[before.broker[stays]]] = True
    return np.where(np.array(matters)[kind], np.minimum(held.sum(axis=1), remain.sum(axis=1)), 0)


def pour(total: float, weight: Floats, most: Floats) -> Floats:
    """Pour ``total`` into vessels of these widths until each is balanced with the others or full.

    Vessels are taken in the order in which they fill up; what is left stands at one level in the others.
    """
    out = np.zeros(len(weight))
    open_ = [int(i) for i in np.argsort(most / np.where(weight > 0, weight, np.nan), kind="stable") if weight[i] > 0]
    left, width = max(total, 0.0), float(weight.sum())
    for at, i in enumerate(open_):
        level = left / width
        if most[i] >= weight[i] * level:
            for j in open_[at:]:
                out[j] = weight[j] * level
            break
        out[i] = most[i]
        left, width = left - most[i], width - weight[i]
    return out


def _firsts(row: Ints) -> Flags:
    out = np.ones(len(row), np.bool_)
    out[1:] = row[1:] != row[:-1]
    return out
