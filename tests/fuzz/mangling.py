"""Hypothesis strategies that take something valid and spoil it a little: what a slip, a cut or another tool would leave.

A parser that only meets random bytes never gets past its first check; one that meets nearly valid input is tested to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from hypothesis import strategies as st

from ballast.errors import BallastError

NASTY: Final = (
    "", " ", "\x00", "\n", "\r\n", "\ufeff", "²", "٣", "\uff19", "-1", "-0", "1e999", "NaN", "Infinity", "9" * 5000, "0x10",
    "null", "true", "[]", "{}", "[" * 200, '{"a":' * 200, "'", '"', "\\", "\\u12", "${x}", "%s", ":", ",", "=", "#", "/", "..",
    "2147483647", "2147483648", "9223372036854775808", "\ud800", "é\u0301", "\u202e", "*", "&a", "!!python/object:os.system",
)  # fmt: skip
"""What tends to break readers: digits that are none in ASCII, figures beyond every type, brackets without end."""

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(NASTY),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spoilt_text(draw: st.DrawFn, valid: Sequence[str]) -> str:
    """One of the valid texts with a few cuts, repeats and insertions."""
    text = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        put = draw(
            st.sampled_from(NASTY) | st.text(st.characters(codec="utf-8"), max_size=3) | st.just(text[start:end] * 2)
        )
        text = text[:start] + put + text[end:]
    return text


@st.composite
def spoilt_tree(draw: st.DrawFn, valid: Any) -> Any:
    """A copy of nested dicts and lists in which up to three nodes are gone, renamed or something else."""
    tree = valid
    for _ in range(draw(st.integers(1, 3))):
        tree = _spoil(draw, tree)
    return tree


def _spoil(draw: st.DrawFn, node: Any) -> Any:
    if isinstance(node, dict):
        items: list[Any] = [[name, node[name]] for name in sorted(node, key=str)]
    elif isinstance(node, list):
        items = [[i, item] for i, item in enumerate(node)]
    else:
        items = []
    if not items or draw(st.integers(0, 7)) == 0:
        return draw(values)
    place = draw(st.integers(0, len(items) - 1))
    match draw(st.sampled_from(("gone", "again", "inside", "inside", "inside"))):
        case "gone":
            del items[place]
        case "again":
            items.append([draw(st.text(max_size=6)), items[place][1]])
        case _:
            items[place][1] = _spoil(draw, items[place][1])
    return dict(items) if isinstance(node, dict) else [item for _, item in items]


def understood_or_refused(read: Callable[[], Any]) -> Any:
    """What was read, or None where it was refused as every refusal must be: by name, with a sentence a person can use."""
    try:
        return read()
    except BallastError as refusal:
        sentence = refusal.message
    assert sentence.strip(), "a refusal without a word"
    return None
