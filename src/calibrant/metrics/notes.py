"""Notes of an evaluation with a topic, so that others need not search their text."""

from __future__ import annotations

from typing import Literal

Topic = Literal["change", "ties"]

#: why the change from before to after has no intervals
CHANGE: Topic = "change"
#: that different scores became equal predictions
TIES: Topic = "ties"


class Note(str):
    """A line of text that knows what it is about.

    >>> note = Note("ties are new", TIES)
    >>> note == "ties are new", note.topic
    (True, 'ties')
    """

    topic: Topic

    def __new__(cls, text: str, topic: Topic) -> Note:
        note = super().__new__(cls, text)
        note.topic = topic
        return note

    def __reduce__(self) -> tuple[type[Note], tuple[str, Topic]]:
        return Note, (str(self), self.topic)


def topic_of(note: str) -> Topic | None:
    """What a note is about, if it says so."""
    return note.topic if isinstance(note, Note) else None
