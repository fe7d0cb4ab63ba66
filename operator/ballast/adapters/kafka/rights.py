"""Which right each question to a cluster takes, in the words of docs/acls.md: a refusal names what is missing."""

from __future__ import annotations

from typing import Final

PAGE: Final = "docs/acls.md"
_RIGHTS: Final = (
    ("topics", "Describe on the topics"),
    ("reassignments in progress", "Describe on the cluster"),
    ("a reassignment", "Alter on the cluster"),
    ("leader elections", "Alter on the cluster"),
    ("log dirs", "Describe on the cluster"),
    ("a log dir move", "Alter on the cluster"),
    ("the controller quorum", "Describe on the cluster"),
    ("configs of broker", "DescribeConfigs on the cluster"),
    ("configs of topic", "DescribeConfigs on the topic"),
    ("a change of configs of broker", "AlterConfigs on the cluster"),
    ("a change of configs of topic", "AlterConfigs on the topic"),
)


def right_for(what: str) -> str | None:
    """The right that a question requires, such as ``Describe on the cluster``; None where no single one can be named."""
    return next((right for words, right in _RIGHTS if what.startswith(words)), None)


def explain_denial(what: str) -> tuple[str, str]:
    """The sentence and the hint for a question that the cluster forbids."""
    right = right_for(what)
    requires = f": it requires {right}" if right else ""
    return f"Not authorized to ask for {what}{requires}.", f"Grant Ballast's principal the ACLs that {PAGE} lists."


def explain(code: str, message: str | None, what: str) -> str:
    """A broker's message about one thing that was asked for; where it forbids, with the right that is missing."""
    right = right_for(what) if code.endswith("AUTHORIZATION_FAILED") else None
    requires = f"{what} requires {right}" if right else ""
    return " ".join(part for part in (f"{message.rstrip('.')};" if message and requires else message, requires) if part)
