"""Which of two words is the yes: pairs that people write into files, in several languages."""

from __future__ import annotations

from collections.abc import Iterable

Label = str | int | float | bool

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


def partner_of(label: Label) -> Label | None:
    """The other word of a yes or a no that came alone, in the same case; None for all other labels.
    Of several partners, as of "ja", it is the first.

    >>> partner_of("Yes"), partner_of("no"), partner_of("bought")
    ('No', 'yes', None)
    """
    word = label.strip() if isinstance(label, str) else ""
    for pair in PAIRS:
        if word.casefold() in pair:
            other = pair[word.casefold() == pair[0]]
            styles = (str.lower, str.title, str.upper)
            return next((style(other) for style in styles if style(word) == word), other)
    return None
