"""Which right each question to a cluster takes, in the words of docs/acls.md: a refusal names what is missing."""

from __future__ import annotations

from typing import Final, Self

from ballast.ports.cluster import ConfigResource

PAGE: Final = "docs/acls.md"


class Question(str):
    """What a cluster is asked for, in words, with the right that it takes, such as ``Describe on the cluster``."""

    __slots__ = ("right",)
    right: str

    def __new__(cls, words: str, right: str) -> Self:
        """The words as any text has them."""
        made = super().__new__(cls, words)
        made.right = right
        return made


TOPICS: Final = Question("topics", "Describe on the topics")
REASSIGNMENTS: Final = Question("reassignments in progress", "Describe on the cluster")
REASSIGNMENT: Final = Question("a reassignment", "Alter on the cluster")
ELECTIONS: Final = Question("leader elections", "Alter on the cluster")
LOG_DIRS: Final = Question("log dirs", "Describe on the cluster")
LOG_DIR_MOVE: Final = Question("a log dir move", "Alter on the cluster")
QUORUM: Final = Question("the controller quorum", "Describe on the cluster")


def configs_of(resource: ConfigResource) -> Question:
    """What is set there."""
    return Question(f"configs of {resource.kind} {resource.name}", f"DescribeConfigs on the {_OF[resource.kind]}")


def config_change_of(resource: ConfigResource) -> Question:
    """Another setting there."""
    return Question(
        f"a change of configs of {resource.kind} {resource.name}", f"AlterConfigs on the {_OF[resource.kind]}"
    )


_OF: Final = {"broker": "cluster", "topic": "topic"}


def explain_denial(what: str) -> tuple[str, str]:
    """The sentence and the hint for a question that the cluster forbids."""
    requires = f": it requires {what.right}" if isinstance(what, Question) else ""
    return f"Not authorized to ask for {what}{requires}.", f"Grant Ballast's principal the ACLs that {PAGE} lists."


def explain(code: str, message: str | None, what: str) -> str:
    """A broker's message about one thing that was asked for; where it forbids, with the right that is missing."""
    if not isinstance(what, Question) or not code.endswith("AUTHORIZATION_FAILED"):
        return message or ""
    told = f"{message.rstrip('.')}; " if message else ""
    return f"{told}{what} requires {what.right}"
