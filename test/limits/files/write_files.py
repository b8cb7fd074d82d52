"""Writes the files in this folder: small files with large cells. Run manually; requires pyarrow."""
import pyarrow as pa
import pyarrow.parquet as pq

LONG = "x" * 20_000_000


def write(name, columns):
    pq.write_table(
        pa.table(columns),
        name + ".parquet",
        compression="zstd",
        use_dictionary=True,
        dictionary_pagesize_limit=100_000_000,
    )


keys = pa.array([0] * 2000, pa.int32())
symbols = pa.DictionaryArray.from_arrays(keys, pa.array([LONG]))
write("dictionary", {"s": symbols, "i": pa.array(range(2000))})
short = LONG[:5_000_000]
write("text", {"s": pa.array([short] * 400), "i": pa.array(range(400))})
write("binary", {"s": pa.array([short.encode()] * 400), "i": pa.array(range(400))})
write("list", {"l": pa.array([[0.0] * 5_000_000] * 20)})
write("skewed", {"l": pa.array([[]] * 19 + [[0.0] * 60_000_000])})
