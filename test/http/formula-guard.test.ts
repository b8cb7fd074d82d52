/** Formulas in exported files: unchanged, or converted to text on request. */
import test from 'ava';

import { FormulaGuard } from '../../ts/http/response/formula-guard.js';
import { startTestServer } from '../golden/server.js';

const LINES: readonly (readonly [string, string])[] = [
  ['"=head","n","s"\r\n', '"\'=head","n","s"\r\n'],
  ['"=1+1",-5,"+x"\r\n', '"\'=1+1",-5,"\'+x"\r\n'],
  ['"-5",-5,"@cmd"\r\n', '"\'-5",-5,"\'@cmd"\r\n'],
  ['"\ttab",,"\r"\r\n', '"\'\ttab",,"\'\r"\r\n'],
  ['"\0","","a=b"\r\n', '"\'\0","","a=b"\r\n'],
  ['"""=quoted""",1,"a,\n=b"\r\n', '"""=quoted""",1,"a,\n=b"\r\n'],
  ['=plain,=1,-\r\n', "'=plain,=1,'-\r\n"],
  ['"a""","=not a text",\r\n', '"a""","=not a text",\r\n'],
  [',,\r\n', ',,\r\n'],
];

test('formula-like strings are escaped regardless of chunk boundaries', (t) => {
  const bytes = Buffer.from(LINES.map(([given]) => given).join(''));
  const expected = LINES.map(([, line]) => line).join('');
  for (let chunk = 1; chunk <= bytes.length; chunk += 1) {
    const guard = new FormulaGuard([true, false, true], ',', true);
    const output: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += chunk) {
      output.push(guard.guard(bytes.subarray(at, at + chunk)));
    }
    t.is(Buffer.concat(output).toString(), expected, `chunks of ${chunk}`);
  }
});

test('a tab delimiter is not escaped; without a header the first line is data', (t) => {
  const guard = new FormulaGuard([true, false], '\t', false);
  t.is(guard.guard(Buffer.from('=a\t=b\r\n\t\r\n')).toString(), "'=a\t=b\r\n\t\r\n");
});

test('exports contain strings as stored, or escaped on request', async (t) => {
  const server = await startTestServer();
  t.teardown(() => server.stop());
  const values = ["'=1+1'", "'@x'", "'plain'", 'null', "'a''=b'"];
  const rows = values.map((value) => `SELECT ${value}::varchar s, ${value}::symbol k, -1 n`);
  const exported = async (rest: string): Promise<string> => {
    const query = encodeURIComponent(rows.join(' UNION ALL '));
    return await (await fetch(`${server.url}/exp?query=${query}&nm=true${rest}`)).text();
  };
  const plain = await exported('');
  t.true(plain.startsWith('"=1+1","=1+1",-1\r\n"@x","@x",-1\r\n'));
  const guarded = await exported('&formula_guard=true');
  t.true(guarded.startsWith('"\'=1+1","\'=1+1",-1\r\n"\'@x","\'@x",-1\r\n'));
  t.is(guarded.replaceAll('"\'', '"'), plain);
  t.is(await exported('&formula_guard=false'), plain);
  t.regex(await exported('&formula_guard=maybe'), /invalid formula_guard/);
});
