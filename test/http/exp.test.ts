/** /exp over a fake database: limits, file names, parameters and refusals. */
import test from 'ava';

import { type Harness, startHarness } from './harness.js';

let harness: Harness;
test.before(async () => {
  harness = await startHarness();
});
test.after.always(() => harness.server.close());

function get(query: string): Promise<Response> {
  return fetch(`${harness.url}/exp?${query}`);
}

const LIMITS: readonly (readonly [limit: string, rows: readonly number[]])[] = [
  ['2', [1, 2]],
  ['1,2', [2]],
  ['2,4', [3, 4]],
  ['0,2', [1, 2]],
  ['3,3', []],
  ['4,2', []],
  ['0', []],
  ['5,100', []],
  ['2,-1', []],
  ['-2', [4, 5]],
  ['-3,-1', [3, 4]],
  ['-3,2', [1, 2]],
  ['1,', [2, 3, 4, 5]],
  ['1,b', [2, 3, 4, 5]],
  ['1,2,3', [2, 3, 4, 5]],
  ['2,+4', [3, 4, 5]],
  [',2', [1, 2, 3, 4, 5]],
  ['abc', [1, 2, 3, 4, 5]],
  ['2.5', [1, 2, 3, 4, 5]],
  ['', [1, 2, 3, 4, 5]],
];

for (const [limit, rows] of LIMITS) {
  test(`limit=${limit} returns rows [${rows.join()}]`, async (t) => {
    const response = await get(`query=rows+5&nm=true&limit=${limit}`);
    t.is(await response.text(), rows.map((row) => `${row}\r\n`).join(''));
  });
}

test('an export has a file name and a content type', async (t) => {
  const response = await get('query=rows+1');
  t.is(response.headers.get('content-type'), 'text/csv; charset=utf-8');
  t.regex(
    response.headers.get('content-disposition') ?? '',
    /^attachment; filename="questdb-query-\d+\.csv"$/,
  );
  t.is(await response.text(), '"x"\r\n1\r\n');
});

test('a file name cannot break out of its header', async (t) => {
  const response = await get(`query=rows+1&filename=${encodeURIComponent('a"b\r\nX: y/é')}`);
  t.is(
    response.headers.get('content-disposition'),
    `attachment; filename="a_b__X: y__.csv"; filename*=UTF-8''a_b__X%3A%20y_%C3%A9.csv`,
  );
});

const REFUSALS: readonly (readonly [query: string, error: string])[] = [
  ['fmt=json', 'unrecognised format [format=json]'],
  [
    'fmt=parquet&compression_codec=ZSTD&compression_level=0',
    'ZSTD compression level must be between 1 and 22',
  ],
  [
    'fmt=parquet&compression_codec=gzip&compression_level=10',
    'GZIP compression level must be between 0 and 9',
  ],
  [
    'fmt=parquet&compression_codec=BROTLI&compression_level=12',
    'Brotli compression level must be between 0 and 11',
  ],
  [
    'fmt=parquet&compression_level=abc',
    'invalid compression level:abc, expected a whole number of at most 10 digits',
  ],
  ['fmt=parquet&row_group_size=abc', 'invalid row group size:abc'],
  [
    'fmt=parquet&data_page_size=abc',
    'invalid data page size:abc, expected a whole number of at most 10 digits',
  ],
  ['fmt=parquet&parquet_version=3', 'invalid parquet version: 3, supported versions: 1, 2'],
  ['fmt=parquet&parquet_version=abc', 'invalid parquet version:abc, supported versions: 1, 2'],
  [
    'fmt=parquet&raw_array_encoding=maybe',
    "invalid raw_array_encoding 'maybe': expected true or false",
  ],
  [
    'fmt=parquet&compression_codec=LZO',
    'invalid compression codec[LZO], expected one of: uncompressed, snappy, gzip, brotli, zstd, ' +
      'lz4, lz4_raw',
  ],
  [
    'delimiter=%3B%3B',
    "invalid delimiter ';;': expected one ASCII character other than quotes and line ends",
  ],
  ['nm=yes', "invalid nm 'yes': expected true or false"],
  [
    'fmt=parquet&partition_by=foo',
    'invalid partition_by: foo, expected one of: NONE, HOUR, DAY, WEEK, MONTH, YEAR',
  ],
];

for (const [query, error] of REFUSALS) {
  test(`${query} is refused`, async (t) => {
    const response = await get(`query=rows+1&${query}`);
    t.is(response.status, 400);
    t.is(await response.text(), JSON.stringify({ query: 'rows 1', error, position: 0 }));
  });
}

test('statements other than queries are refused', async (t) => {
  const refusals = [
    ['', 'No query text'],
    ['insert 1', '/exp endpoint only accepts SELECT'],
    ['-- nothing', '/exp endpoint only accepts SELECT'],
  ];
  for (const [query = '', error] of refusals) {
    const response = await get(`query=${encodeURIComponent(query)}`);
    t.is(response.status, 400);
    t.is(await response.text(), JSON.stringify({ query, error, position: 0 }));
  }
  t.false(harness.database.journal.executed.includes('insert 1'));
});

test('a read-only server exports only CSV', async (t) => {
  const guarded = await startHarness({ set: ['http.security.readonly=true'] });
  const get = async (format: string): Promise<[number, string]> => {
    const response = await fetch(`${guarded.url}/exp?query=rows+1&fmt=${format}`);
    return [response.status, await response.text()];
  };
  t.is((await get('csv'))[0], 200);
  t.deepEqual(await get('parquet'), [
    403,
    '{"query":"rows 1","error":"fmt=parquet is not supported on read-only servers; use fmt=csv",' +
      '"position":0}',
  ]);
  await guarded.server.close();
});
