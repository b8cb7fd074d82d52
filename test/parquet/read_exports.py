"""Reads files from /exp with pyarrow, DuckDB and Polars; prints what each of them read as JSON.
Arguments: Parquet files, or .zip archives of them."""

import datetime
import decimal
import io
import json
import os
import sys
import uuid
import zipfile

import duckdb
import polars
import pyarrow.parquet as parquet


def plain(value):
    """Returns the same string for the same value, whichever program read it."""
    if isinstance(value, datetime.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
        return aware.astimezone(datetime.timezone.utc).isoformat(timespec="microseconds")
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def arrow_rows(source):
    table = parquet.read_table(source)
    return [[plain(value) for value in row.values()] for row in table.to_pylist()]


def duck_rows(path):
    # Timestamps as UTC without a zone, because DuckDB's zone extension may not be installed.
    columns = duckdb.sql(f"DESCRIBE FROM '{path}'").fetchall()
    zoned = [name for name, kind, *_ in columns if kind == "TIMESTAMP WITH TIME ZONE"]
    casts = ", ".join(f"timezone('UTC', {name}) AS {name}" for name in zoned)
    query = f"SELECT * REPLACE ({casts}) FROM '{path}'" if zoned else f"FROM '{path}'"
    return [[plain(value) for value in row] for row in duckdb.sql(query).fetchall()]


def polar_rows(path):
    return [[plain(value) for value in row] for row in polars.read_parquet(path).rows()]


def codecs(path):
    metadata = parquet.ParquetFile(path).metadata
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    return sorted({group.column(at).compression for group in groups for at in range(group.num_columns)})


def of_archive(path):
    with zipfile.ZipFile(path) as archive:
        if archive.testzip() is not None:
            raise ValueError("a checksum differs")
        return {name: arrow_rows(io.BytesIO(archive.read(name))) for name in archive.namelist()}


answers = {}
for path in sys.argv[1:]:
    if path.endswith(".zip"):
        answers[path] = of_archive(path)
    else:
        answers[path] = {
            "pyarrow": arrow_rows(path),
            "duckdb": duck_rows(path),
            "polars": polar_rows(path),
            "codecs": codecs(path),
        }
print(json.dumps(answers), flush=True)
# Library threads may abort an interpreter that is shutting down.
os._exit(0)
