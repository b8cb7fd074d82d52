/** Log lines: one JSON object each, nothing secret, nothing a terminal would obey. */
import test from 'ava';

import { createLogger, MetricsRegistry } from '../../ts/observability/index.js';
import { type LogLevel } from '../../ts/observability/logger.js';

function collect(level: LogLevel): [string[], ReturnType<typeof createLogger>] {
  const lines: string[] = [];
  const now = (): Date => new Date(0);
  return [lines, createLogger({ level, now, write: (line) => lines.push(line) })];
}

test('a line names time, level, component, event and fields', (t) => {
  const [lines, logger] = collect('info');
  logger.child('http').info('started', { port: 9000, id: 5n });
  t.deepEqual(lines, [
    '{"time":"1970-01-01T00:00:00.000Z","level":"info","component":"http","event":"started",' +
      '"port":9000,"id":"5"}\n',
  ]);
});

test('levels below the limit are dropped', (t) => {
  const [lines, logger] = collect('warn');
  logger.info('quiet');
  logger.debug('quieter');
  logger.error('loud');
  t.is(lines.length, 1);
});

test('secrets do not reach the log', (t) => {
  const [lines, logger] = collect('debug');
  logger.debug('statement', {
    sql: "CREATE USER x WITH PASSWORD 'canary'",
    url: '/exec?code=canary&password=canary',
    password: 'canary',
    header: 'Basic Y2FuYXJ5Y2FuYXJ5',
    Authorization: 'canary',
    error: new Error('token=canary'),
  });
  t.false(/canary|Y2FuYXJ5/.test(lines.join('').replace(/"stack":"[^"]*"/, '')));
});

test('a line cannot be broken or coloured from outside', (t) => {
  const [lines, logger] = collect('debug');
  logger.debug('seen', { agent: 'a\r\nb\u001b[31m\u009b31m\u2028\u007f' });
  const [line = ''] = lines;
  t.is(line.indexOf('\n'), line.length - 1);
  // Everything but the line end is plain.
  t.regex(line.slice(0, -1), /^[ -~]*$/);
});

test('long lines are cut and stay JSON', (t) => {
  const [lines, logger] = collect('debug');
  logger.debug('long', { text: 'x'.repeat(100_000) });
  t.true((lines[0] ?? '').length < 10_000);
  t.notThrows(() => {
    JSON.parse(lines[0] ?? '');
  });
});

test('metrics are Prometheus text', (t) => {
  const metrics = new MetricsRegistry();
  metrics.counter('http_requests_total', 'Requests.').increment(2);
  t.is(
    metrics.text({ statements_total: 3 }),
    '# HELP tidemark_http_requests_total Requests.\n' +
      '# TYPE tidemark_http_requests_total counter\n' +
      'tidemark_http_requests_total 2\n' +
      '# TYPE tidemark_statements_total gauge\n' +
      'tidemark_statements_total 3\n',
  );
});
