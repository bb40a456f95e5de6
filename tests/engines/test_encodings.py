"""CSV files in the encodings of Windows: read, named, and written back byte for byte."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import tracemalloc
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.data.lazy import Names
from calibrant.engines.apply import ApplyOptions
from calibrant.engines.files import PLAIN_READING, ReadOptions, decode_file, file_encoding
from calibrant.engines.open_engine import open_engine, read_rows
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.fitted import Fitted

#: as Excel writes it in Germany; the euro sign is 0x80 in cp1252
TEXT = "Name;Größe;gekündigt\r\n" + "Müller;0,25;ja\r\n„Weiß“ €;0,5;nein\r\nJäger;0,75;ja\r\n" * 40
WAYS = {
    "cp1252": TEXT.encode("cp1252"),
    "UTF-16": codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
    "UTF-16 BE": codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
}
OPTIONS = ApplyOptions("Größe")


def fitted() -> Fitted:
    return Fitted(cal.maps.Piecewise.step([0.4], [0.25, 0.75]), ("ja", "nein"), "ja")


def apply(files, out, reading=PLAIN_READING, options=OPTIONS):
    with open_engine(threads=2, reading=reading) as engine:
        return engine.apply(fitted(), files, out, options), engine.notes


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_files_of_windows_are_read_named_and_written_as_they_came(tmp_path, way, packed):
    ending, pack = (".csv.gz", gzip.compress) if packed else (".csv", bytes)
    file, out = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    file.write_bytes(pack(WAYS[way]))
    with open_engine(threads=2) as engine:
        names = engine.first_rows([file], 2)
        assert list(names) == ["Name", "Größe", "gekündigt"]
        assert names["Name"] == ["Müller", "„Weiß“ €"]
        read = read_rows(engine.rows([file], Names("Größe", "gekündigt")))
        assert (read.classes, read.facts["rows"]) == (("ja", "nein"), 120)
        assert f"read as {way[:6]}" in engine.notes[0]
        assert "'Größe'" in engine.notes[0]
    count, _ = apply([file], out)
    assert count == 120
    bytes_ = gzip.decompress(out.read_bytes()) if packed else out.read_bytes()
    codec = "cp1252" if way == "cp1252" else "utf-16"
    assert bytes_[:2] == WAYS[way][:2]
    written = bytes_.decode(codec).split("\r\n")
    for before, after in zip(TEXT.split("\r\n"), written, strict=True):
        assert after.rpartition(";")[0] == before
    assert list(tmp_path.iterdir()) == [out, file] or set(tmp_path.iterdir()) == {out, file}


def test_a_mark_before_utf_8_is_kept(tmp_path):
    """Excel writes it as "CSV UTF-8", and without it reads cp1252."""
    file, out = tmp_path / "in.csv", tmp_path / "out.csv"
    file.write_bytes(codecs.BOM_UTF8 + TEXT.encode())
    apply([file], out)
    assert out.read_bytes().startswith(codecs.BOM_UTF8 + b"Name;")
    written = out.read_bytes().decode("utf-8-sig").split("\r\n")
    assert [line.rpartition(";")[0] for line in written] == TEXT.split("\r\n")
    (tmp_path / "plain.csv").write_bytes(TEXT.encode())
    _, notes = apply([file, tmp_path / "plain.csv"], out)
    assert out.read_bytes().startswith(b"Name;")
    assert not any("encodings" in note for note in notes)
    apply([file], tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes().startswith(b"{")


def test_standard_input_and_a_pipe(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    reading = ReadOptions(standard_input=io.BytesIO(WAYS["cp1252"]))
    assert apply(["-"], pipe, reading)[0] == 120
    assert os.read(reader, 100_000).startswith(
        "Name;Größe;gekündigt;probability\r\n".encode("cp1252")
    )
    os.close(reader)


def test_an_encoding_by_name(tmp_path):
    text = "Größe;y;ł\n0,5;ja;żółć\n0,6;nein;ń\n"
    (tmp_path / "in.csv").write_bytes(text.encode("cp1250"))
    _, notes = apply([tmp_path / "in.csv"], tmp_path / "o.csv", ReadOptions(encoding="cp1250"))
    lines = (tmp_path / "o.csv").read_bytes().decode("cp1250").split("\n")
    assert [line.rpartition(";")[0] for line in lines] == text.split("\n")
    assert not any("cp1252" in note for note in notes)
    with pytest.raises(ParameterError, match=r"such as cp1252.*'windoof' came"):
        ReadOptions(encoding="windoof")
    with pytest.raises(InputError, match="must be UTF-8 text"):
        apply([tmp_path / "in.csv"], tmp_path / "o.csv", ReadOptions(encoding="utf8"))
    (tmp_path / "in.jsonl").write_text('{"s": 1}\n')
    with pytest.raises(ParameterError, match="--encoding is for CSV files"):
        apply([tmp_path / "in.jsonl"], tmp_path / "o.csv", ReadOptions(encoding="cp1250"))
    with (
        pytest.raises(ParameterError, match="spark reads UTF-8"),
        open_engine("spark", reading=ReadOptions(encoding="cp1250")),
    ):
        pass


def test_latin_1_is_told_from_cp1252(tmp_path):
    (tmp_path / "in.csv").write_bytes(WAYS["cp1252"])
    _, notes = apply([tmp_path / "in.csv"], tmp_path / "o.csv", ReadOptions(encoding="latin1"))
    assert any("latin-1 lacks" in note and "--encoding cp1252" in note for note in notes)


def test_letters_that_the_encoding_lacks_and_files_of_several(tmp_path):
    (tmp_path / "a.csv").write_bytes(WAYS["cp1252"])
    (tmp_path / "b.csv").write_bytes(WAYS["UTF-16"])
    out = tmp_path / "o.csv"
    options = ApplyOptions("Größe", "вероятность")
    with pytest.raises(InputError, match=r"cp1252 has no 'в'\. Choose another name with --into"):
        apply([tmp_path / "a.csv"], out, options=options)
    assert not out.exists()
    apply([tmp_path / "b.csv"], out, options=options)
    assert "вероятность" in out.read_bytes().decode("utf-16")
    _, notes = apply([tmp_path / "a.csv", tmp_path / "b.csv"], out)
    assert "o.csv is UTF-8: the files have several encodings" in notes
    assert out.read_text(encoding="utf-8").count("Müller") == 80
    apply([tmp_path / "a.csv"], tmp_path / "o.jsonl")
    assert "Müller" in (tmp_path / "o.jsonl").read_text(encoding="utf-8")


def test_a_letter_below_the_first_rows(tmp_path):
    file = tmp_path / "in.csv"
    for rows in (3_000, 400_000):
        file.write_bytes(b"s,y,n\n" + b"0.5,1,a\n0.2,0,b\n" * rows + b"0.5,1,\xfc\n")
        with open_engine(threads=2) as engine:
            engine.first_rows([file], 100_000)
            read = read_rows(engine.rows([file], Names("s", "y")))
            assert read.facts["rows"] == 2 * rows + 1
            assert "'ü'" in engine.notes[0]


def test_memory_does_not_grow_with_the_file(tmp_path):
    file = tmp_path / "in.csv"
    file.write_bytes(b"s,y,n\n" + b"0.5,1,M\xfcller\n" * 1_000_000)
    tracemalloc.start()
    with (tmp_path / "copy").open("wb") as to:
        decode_file(file, file_encoding(file, "cp1252"), to)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8_000_000 < Path(tmp_path / "copy").stat().st_size
