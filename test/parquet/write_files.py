"""Writes Parquet files as other programs do: a column of each type, partitions in directories,
types that the dialect lacks. The first argument is the directory."""

import datetime
import decimal
import os
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as parquet

root = sys.argv[1]
WHEN = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901)
UTC = datetime.timezone.utc


def write(name, columns, **options):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    parquet.write_table(pa.table(columns), path, **options)


def cells(kind, value):
    return pa.array([value, None], kind)


def decimals(precision, scale, text):
    kind = pa.decimal256 if precision > 38 else pa.decimal128
    return cells(kind(precision, scale), decimal.Decimal(text))


def every_type():
    half = pa.array([1.5, None], pa.float32()).cast(pa.float16())
    columns = {
        "flag": cells(pa.bool_(), True),
        "i8": cells(pa.int8(), -8),
        "i16": cells(pa.int16(), -16),
        "i32": cells(pa.int32(), -32),
        "i64": cells(pa.int64(), -(2**62)),
        "u8": cells(pa.uint8(), 2**8 - 1),
        "u16": cells(pa.uint16(), 2**16 - 1),
        "u32": cells(pa.uint32(), 2**32 - 1),
        "u64": cells(pa.uint64(), 2**64 - 1),
        "f16": half,
        "f32": cells(pa.float32(), 0.5),
        "f64": pa.array([0.1, float("nan")], pa.float64()),
        "dec9": decimals(9, 2, "-1234567.89"),
        "dec18": decimals(18, 4, "12345678901234.5678"),
        "dec38": decimals(38, 10, "1234567890123456789012345678.0123456789"),
        "dec76": decimals(76, 0, "9" * 76),
        "day": cells(pa.date32(), WHEN.date()),
        "time_ms": cells(pa.time32("ms"), datetime.time(10, 11, 12, 345000)),
        "time_us": cells(pa.time64("us"), datetime.time(10, 11, 12, 345678)),
        "ts_ms": cells(pa.timestamp("ms"), WHEN.replace(microsecond=678000)),
        "ts_us": cells(pa.timestamp("us"), WHEN),
        "ts_ns": cells(pa.timestamp("ns"), WHEN),
        "ts_utc": cells(pa.timestamp("us", "UTC"), WHEN.replace(tzinfo=UTC)),
        "ts_zone": cells(pa.timestamp("us", "+02:00"), WHEN.replace(tzinfo=UTC)),
        "text": cells(pa.string(), "é\n"),
        "large_text": cells(pa.large_string(), "large"),
        "text_view": cells(pa.string_view(), "view"),
        "symbol": pa.array(["a", None]).dictionary_encode(),
        "number_dict": pa.array([7, None], pa.int64()).dictionary_encode(),
        "bytes": cells(pa.binary(), b"\x01\x02"),
        "large_bytes": cells(pa.large_binary(), b"\x03"),
        "three_bytes": cells(pa.binary(3), b"\x04\x05\x06"),
        "uuid": pa.array([uuid.UUID(int=1).bytes, None], pa.uuid()),
        "json": pa.array(['{"a":1}', None], pa.json_()),
        "nothing": pa.nulls(2),
        "list_f64": cells(pa.list_(pa.float64()), [1.0, None, 3.5]),
        "list_f32": cells(pa.large_list(pa.float32()), [0.5]),
        "list_i64": cells(pa.list_(pa.int64()), [1, 2]),
        "list_fixed": cells(pa.list_(pa.int16(), 2), [3, 4]),
        "nested": cells(pa.list_(pa.list_(pa.float64())), [[1.0, 2.0], [3.0, 4.0]]),
        "duration": cells(pa.duration("us"), datetime.timedelta(seconds=1)),
    }
    write("types/every.parquet", columns)
    # Old writers: no Arrow schema in the footer, other encodings of the same types.
    old = {name: columns[name] for name in ("flag", "i32", "text", "f64", "dec9", "dec38")}
    old["int96"] = cells(pa.timestamp("ns"), WHEN)
    write(
        "types/old.parquet",
        old,
        store_schema=False,
        version="1.0",
        use_deprecated_int96_timestamps=True,
        compression="gzip",
        data_page_version="1.0",
    )
    write("types/bytes_decimal.parquet", {"d": columns["dec9"]}, store_decimal_as_integer=False)
    write("types/int_decimal.parquet", {"d": columns["dec18"]}, store_decimal_as_integer=True)
    annotated()


def annotated():
    """Columns that pyarrow cannot write: changes the annotation of a different column in the footer."""
    text = b"\x25\x00\x4c\x1c\x00\x00\x00"
    plain = b"\x00"
    for name, kind, value, before, after in (
        # A converted type and the corresponding logical type: strings, enumerations, BSON.
        ("enum", pa.string(), "red", text, b"\x25\x08\x4c\x4c\x00\x00\x00"),
        ("bson", pa.string(), "\x05\0\0\0\0", text, b"\x25\x28\x4c\xdc\x00\x00\x00"),
        # Converted types only: a decimal with 2 places and 9 digits, an interval.
        ("decimal", pa.binary(), (-1234567).to_bytes(3, "big", signed=True), plain,
         b"\x25\x0a\x15\x04\x15\x12\x00"),
        ("interval", pa.binary(12), bytes([1, 0, 0, 0] * 3), plain, b"\x25\x2a\x00"),
    ):
        path = f"types/{name}.parquet"
        write(path, {name: cells(kind, value)}, store_schema=False, write_statistics=False)
        annotate(os.path.join(root, path), name.encode(), before, after)
    when = datetime.time(10, 11, 12, 345678)
    write("types/time_ns.parquet", {"t": cells(pa.time64("ns"), when)}, version="2.6")


def annotate(path, column, before, after):
    """Changes what follows a column's name in the footer, which is Thrift's compact protocol."""
    with open(path, "rb") as file:
        whole = file.read()
    length = int.from_bytes(whole[-8:-4], "little")
    body, footer = whole[: -8 - length], whole[-8 - length : -8]
    name = b"\x18" + bytes([len(column)]) + column
    assert footer.count(name + before) == 1, footer
    footer = footer.replace(name + before, name + after)
    with open(path, "wb") as file:
        file.write(body + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    # The footer is still readable.
    parquet.read_schema(path)


def nested():
    point = pa.struct([("a", pa.int64()), ("b\"c", pa.string()), ("at", pa.timestamp("us"))])
    columns = {
        "x": pa.array([1, 2]),
        "point": cells(point, {"a": 1, "b\"c": "\x01é", "at": WHEN}),
        "part": cells(pa.struct([("a", pa.int64()), ("b", pa.float64())]), {"b": 0.5}),
        "tags": cells(pa.map_(pa.string(), pa.string()), [("k", "v"), ("l", None)]),
        "counts": cells(pa.map_(pa.int32(), pa.list_(pa.float64())), [(7, [1.5, None])]),
        "names": cells(pa.list_(pa.string()), ["a", None, 'q"']),
        "points": cells(pa.list_(pa.struct([("a", pa.bool_())])), [{"a": True}, None]),
        "amounts": cells(pa.list_(pa.decimal128(9, 2)), [decimal.Decimal("1.20")]),
        "bytes": cells(pa.struct([("b", pa.binary())]), {"b": b"\x01\xff"}),
        "y": pa.array([0.5, 1.5]),
    }
    write("nested/every.parquet", columns, row_group_size=1)
    deep, value = pa.int64(), 1
    for _ in range(70):
        deep, value = pa.list_(deep), [value]
    write("nested/deep.parquet", {"x": pa.array([1]), "deep": pa.array([value], deep)})


def series():
    rows = {
        "v": pa.array(range(1000)),
        "at": pa.array([WHEN + datetime.timedelta(minutes=row) for row in range(1000)]),
    }
    order = [parquet.SortingColumn(1)]
    write("series/sorted.parquet", rows, row_group_size=300, sorting_columns=order)
    later = {**rows, "at": pa.array([at.as_py() + datetime.timedelta(days=1) for at in rows["at"]])}
    write("series/sorted_later.parquet", later, sorting_columns=order)
    write("series/unsaid.parquet", rows)
    write("series/backwards.parquet", {name: cells[::-1] for name, cells in rows.items()})
    write("series/two.parquet", {**rows, "seen": later["at"]})


def refused():
    write("refused/ragged.parquet", {"cells": pa.array([[[1.0], [1.0, 2.0]]])})
    write("refused/inexact.parquet", {"big": pa.array([[2**53 + 1]], pa.list_(pa.int64()))})


def partitions():
    for year, month in ((2023, 12), (2024, 1), (2024, 2)):
        first = datetime.datetime(year, month, 1)
        rows = {
            "ts": pa.array([first + datetime.timedelta(hours=hour) for hour in range(200)]),
            "n": pa.array([year * 100_000 + month * 1_000 + row for row in range(200)], pa.int64()),
            "d": pa.array([month + row / 1_000 for row in range(200)]),
            "s": pa.array([f"{month:02}-{row:03}" for row in range(200)]),
        }
        name = f"hive/year={year}/month={month:02}/city=New%20York/rows.parquet"
        write(name, rows, row_group_size=50)
    write("several/b.parquet", {"a": pa.array([2], pa.int32()), "t": pa.array(["two"])})
    write("several/a.parquet", {"a": pa.array([1], pa.int64()), "more": pa.array([0.5])})
    write("several/deep/er/c.parquet", {"A": pa.array([3], pa.int32())})
    write("several/.hidden.parquet", {"a": pa.array([4])})
    write("cases/one.parquet", {"a": pa.array([1]), "A": pa.array([2]), "b": pa.array([3])})
    write("cases/two.parquet", {"A": pa.array([5]), "a": pa.array([4]), "B": pa.array([6])})
    write("clash/a.parquet", {"a": pa.array([1])})
    write("clash/b.parquet", {"a": pa.array(["text"])})


every_type()
nested()
series()
refused()
partitions()
print("null", flush=True)
# Library threads may abort an interpreter that is shutting down.
os._exit(0)
