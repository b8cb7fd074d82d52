/** Log lines: one JSON object each, without secrets or terminal escape sequences. */
import test from 'ava';

import { createLogger, MetricsRegistry } from '../../ts/observability/index.js';
import { type LogLevel } from '../../ts/observability/logger.js';

function collect(level: LogLevel): [string[], ReturnType<typeof createLogger>] {
  const lines: string[] = [];
  const now = (): Date => new Date(0);
  return [lines, createLogger({ level, now, write: (line) => lines.push(line) })];
}

test('a line contains time, level, component, event and fields', (t) => {
  const [lines, logger] = collect('info');
  logger.child('http').info('started', { port: 9000, id: 5n });
  t.deepEqual(lines, [
    '{"time":"1970-01-01T00:00:00.000Z","level":"info","component":"http","event":"started",' +
      '"port":9000,"id":"5"}\n',
  ]);
});

test('lines below the log level are dropped', (t) => {
  const [lines, logger] = collect('warn');
  logger.info('quiet');
  logger.debug('quieter');
  logger.error('loud');
  t.is(lines.length, 1);
});

test('secrets are not logged', (t) => {
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

test('log fields cannot inject line breaks or colours', (t) => {
  const [lines, logger] = collect('debug');
  logger.debug('seen', { agent: 'a\r\nb\u001b[31m\u009b31m\u2028\u007f' });
  const [line = ''] = lines;
  t.is(line.indexOf('\n'), line.length - 1);
  // All characters except the line end are printable ASCII.
  t.regex(line.slice(0, -1), /^[ -~]*$/);
});

test('long lines are truncated and stay valid JSON', (t) => {
  const [lines, logger] = collect('debug');
  logger.debug('long', { text: 'x'.repeat(100_000) });
  t.true((lines[0] ?? '').length < 10_000);
  t.notThrows(() => {
    JSON.parse(lines[0] ?? '');
  });
});

test('metrics are in the Prometheus text format', (t) => {
  const metrics = new MetricsRegistry();
  metrics.counter('requests_total', 'Requests.', { protocol: 'a' }).increment(2);
  metrics.counter('requests_total', 'Requests.', { protocol: 'b"' }).increment(3);
  metrics.gauge('open', 'Open.', () => 4);
  metrics.gauge('unknown', 'Not known here.', () => null);
  let looks = 0;
  metrics.beforeRender(() => {
    looks += 1;
  });
  metrics.common('process_looks_total', { kind: 'counter', help: 'Looks.' }, () => looks);
  t.is(
    metrics.text(),
    '# HELP tidemark_requests_total Requests.\n' +
      '# TYPE tidemark_requests_total counter\n' +
      'tidemark_requests_total{protocol="a"} 2\n' +
      'tidemark_requests_total{protocol="b\\""} 3\n' +
      '# HELP tidemark_open Open.\n' +
      '# TYPE tidemark_open gauge\n' +
      'tidemark_open 4\n' +
      '# HELP process_looks_total Looks.\n' +
      '# TYPE process_looks_total counter\n' +
      'process_looks_total 1\n',
  );
});
