/** Parts of an upload. Their bytes arrive unmodified, and either completely or not at all. */
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { gzipSync } from 'node:zlib';

import test from 'ava';

import { multipartProblem, readParts } from '../../ts/http/request/multipart-parts.js';

interface ParsedRequest {
  readonly parts: { name: string; filename: string | null; bytes: Buffer }[];
  error: Error | null;
}

let server: Server;
/** Resolves when the current request has been read or aborted. */
let seen: Promise<ParsedRequest>;
let skipFirst = false;

test.before(async () => {
  let report: (seen: ParsedRequest) => void = () => undefined;
  const expectNext = (): void => {
    seen = new Promise((resolve) => {
      report = resolve;
    });
  };
  expectNext();
  server = createServer((request, response) => {
    const result: ParsedRequest = { parts: [], error: null };
    const read = async (): Promise<void> => {
      for await (const part of readParts(request, 30_000)) {
        const chunks: Buffer[] = [];
        if (!(skipFirst && result.parts.length === 0)) {
          for await (const chunk of part.content) {
            chunks.push(chunk);
          }
        }
        const { name, filename } = part;
        result.parts.push({ name, filename, bytes: Buffer.concat(chunks) });
      }
    };
    read()
      .catch((error: unknown) => {
        result.error = error as Error;
      })
      .finally(() => {
        report(result);
        expectNext();
        response.end('done');
      });
  });
  // On a slow machine the pause between two uploads may exceed the idle timeout.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
test.after.always(() => server.close());

function port(): number {
  return (server.address() as AddressInfo).port;
}

function part(name: string, content: string | Buffer, filename?: string): Buffer {
  const file = filename === undefined ? '' : `; filename="${filename}"`;
  const head = `--b\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(content), Buffer.from('\r\n')]);
}

const END = Buffer.from('--b--\r\n');

async function upload(body: Buffer, headers: Record<string, string> = {}): Promise<ParsedRequest> {
  const waiting = seen;
  await fetch(`http://127.0.0.1:${port()}/`, {
    method: 'POST',
    headers: { 'Content-Type': 'multipart/form-data; boundary=b', ...headers },
    body: new Uint8Array(body),
  }).catch(() => undefined);
  return await waiting;
}

test.serial('multipart parts arrive in order, byte for byte', async (t) => {
  const large = Buffer.alloc(3_000_000, 'abc\r\n--x');
  const result = await upload(
    Buffer.concat([
      part('schema', Buffer.from([0x5b, 0xff, 0x5d])),
      part('data', large, 'dir/é.csv'),
      part('data', '', 'empty'),
      END,
    ]),
  );
  t.is(result.error, null);
  t.deepEqual(
    result.parts.map(({ name, filename }) => [name, filename]),
    [
      ['schema', null],
      ['data', 'dir/é.csv'],
      ['data', 'empty'],
    ],
  );
  t.deepEqual(result.parts[0]?.bytes, Buffer.from([0x5b, 0xff, 0x5d]));
  t.true(result.parts[1]?.bytes.equals(large));
  t.is(result.parts[2]?.bytes.length, 0);
});

test.serial('an unread part does not block the next', async (t) => {
  skipFirst = true;
  const large = Buffer.alloc(3_000_000, 'x');
  const result = await upload(Buffer.concat([part('a', large, 'a'), part('b', 'kept', 'b'), END]));
  skipFirst = false;
  t.is(result.error, null);
  t.is(result.parts[1]?.bytes.toString(), 'kept');
});

test.serial('a body without its final boundary is an error', async (t) => {
  const result = await upload(part('data', 'a,b\n1,2\n', 'x.csv'));
  t.regex(result.error?.message ?? '', /malformed multipart body/);
});

test.serial('an aborted connection is an error', async (t) => {
  const waiting = seen;
  const socket = connect(port(), '127.0.0.1');
  socket.write(
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n' +
      'Content-Length: 100000\r\n\r\n',
  );
  socket.write(part('data', 'a,b\n1,2\n', 'x.csv').subarray(0, -2));
  setTimeout(() => socket.destroy(), 100);
  const result = await waiting;
  t.true(result.error instanceof Error);
});

test.serial('too many parts are an error', async (t) => {
  const eight = Array.from({ length: 8 }, (_, index) => part('data', 'x', `f${index}`));
  t.is((await upload(Buffer.concat([...eight, END]))).error, null);
  const nine = [...eight, part('data', 'x', 'f8'), END];
  t.true((await upload(Buffer.concat(nine))).error instanceof Error);
});

test.serial('a part with a malformed header is an error, not skipped', async (t) => {
  const good = part('data', 'a,b\n', 'x');
  const malformed = [
    'Content-Disposition form-data; name="data"\r\n\r\nrows\r\n',
    'Content-Disposition: attachment; name="data"\r\n\r\nrows\r\n',
    'Content-Type: text/csv\r\n\r\nrows\r\n',
    'Content-Disposition: form-data; name="data"\r\n',
  ];
  for (const text of malformed) {
    const bad = Buffer.from(`--b\r\n${text}`);
    for (const body of [[good, bad], [bad, good], [bad]]) {
      const result = await upload(Buffer.concat([...body, END]));
      t.regex(
        result.error?.message ?? '',
        /^malformed multipart body: Malformed part header/,
        text,
      );
    }
  }
});

test.serial('escaped and extended file names are read; any epilogue is ignored', async (t) => {
  const named = async (parameters: string): Promise<unknown> => {
    const head = `--b\r\ncontent-disposition: Form-Data; ${parameters}\r\n\r\nx\r\n`;
    const { parts, error } = await upload(Buffer.from(`before\r\n${head}--b--\r\nafter\r\n--b`));
    return error ?? [parts[0]?.name, parts[0]?.filename];
  };
  t.deepEqual(await named('name=data; filename=a.csv'), ['data', 'a.csv']);
  t.deepEqual(await named('filename="a;\\"b\\".csv"; name="d"'), ['d', 'a;"b".csv']);
  t.deepEqual(await named('name="d"; filename="C:\\dir\\x"'), ['d', 'C:\\dir\\x']);
  t.deepEqual(await named(`name="d"; filename="e"; filename*=UTF-8''%C3%A9`), ['d', 'é']);
  t.deepEqual(await named(`name="d"; filename="e"; filename*=UTF-8''%C3`), ['d', 'e']);
  t.deepEqual(await named(`name="${'\\'.repeat(10_000)}`), ['', null]);
});

test.serial('a compressed body is inflated; a compression bomb is refused', async (t) => {
  const headers = { 'Content-Encoding': 'gzip' };
  const body = Buffer.concat([part('data', 'a,b\n', 'x'), END]);
  const plain = await upload(gzipSync(body), headers);
  t.is(plain.parts[0]?.bytes.toString(), 'a,b\n');
  const zeros = Buffer.concat([part('data', Buffer.alloc(80_000_000), 'x'), END]);
  const bomb = await upload(gzipSync(zeros), headers);
  t.regex(bomb.error?.message ?? '', /decompressed request body is too large/);
  const other = await upload(body, { 'Content-Encoding': 'br' });
  t.regex(other.error?.message ?? '', /unsupported content encoding/);
});

test('other content types are refused as non-multipart', (t) => {
  const problem = multipartProblem;
  t.is(problem('text/csv'), 'Non-multipart POST not supported');
  t.is(problem('multipart/form-data; boundary=x'), null);
  t.is(problem('multipart/form-data; boundary="x y"'), null);
  t.regex(problem('multipart/form-data') ?? '', /boundary/);
  t.regex(problem(`multipart/form-data; boundary=${'x'.repeat(71)}`) ?? '', /boundary/);
});
