"""Which of two words is the yes: pairs that people write into files, in several languages."""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.engines.files.spelled_labels import Label

__all__ = ["yes_of"]

#: the yes and its no; pairs that some use one way and some the other, such as good and bad, are out
_WORDS = """
yes/no y/n true/false t/f positive/negative pos/neg +/-
ja/nein j/n wahr/falsch positiv/negativ ja/nee ja/nej ja/nei
oui/non o/n vrai/faux positif/négatif
si/no sí/no s/n verdadero/falso positivo/negativo sì/no vero/falso sim/não sim/nao verdadeiro/falso
tak/nie ano/ne áno/nie da/ne da/nu igen/nem kyllä/ei evet/hayır да/нет так/ні ναι/όχι
はい/いいえ 是/否 예/아니요 예/아니오
"""
PAIRS = tuple(tuple(pair.split("/")) for pair in _WORDS.split())


def yes_of(labels: Iterable[Label]) -> Label | None:
    """The one of two labels that says yes; None where they are no such pair.

    >>> yes_of(["Ja", "Nein"]), yes_of(["no", "yes"]), yes_of(["good", "bad"])
    ('Ja', 'yes', None)
    """
    words = {str(label).strip().casefold(): label for label in labels if isinstance(label, str)}
    return next((words[yes] for yes, no in PAIRS if words.keys() == {yes, no}), None)
