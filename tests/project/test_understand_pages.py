"""The pages of docs/understand open alike, and their pictures are small and shown."""

from __future__ import annotations


def test_pages_say_what_the_reader_can_do(root):
    for path in (root / "docs" / "understand").rglob("*.md"):
        title, blank, opening = path.read_text(encoding="utf-8").split("\n")[:3]
        assert title.startswith("# "), path.name
        assert not blank, path.name
        assert opening.startswith("After this page you"), path.name


def test_pictures_of_methods_are_small_and_shown(root):
    pages = (root / "docs" / "understand").rglob("*.md")
    told = "".join(path.read_text(encoding="utf-8") for path in pages)
    pictures = [*(root / "docs" / "pictures" / "methods").iterdir()]
    assert len(pictures) > 10
    for picture in pictures:
        assert 10_000 < picture.stat().st_size < 60_000, picture.name
        assert f"pictures/methods/{picture.name})" in told, picture.name
