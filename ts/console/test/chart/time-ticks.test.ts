import test from 'ava';
import { DAY, HOUR, MINUTE, timeTicks, UTC, type Calendar } from '../../src/chart/time-ticks.js';

/** Returns the calendar of a named zone, as a browser in that zone would compute it. */
function calendarOf(zone: string): Calendar {
  const form = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  const wallTimeOf: Calendar['wallTimeOf'] = (at) => {
    const fields = new Map(
      form.formatToParts(at).map(({ type, value }) => [type, Number(value)] as const),
    );
    const of = (type: Intl.DateTimeFormatPartTypes): number => fields.get(type) ?? 0;
    const seconds = (of('hour') * 60 + of('minute')) * 60 + of('second');
    return { year: of('year'), month: of('month') - 1, day: of('day'), clock: seconds * 1000 };
  };
  return {
    wallTimeOf,
    dayStart: (year, month, day) => {
      // Finds the first quarter hour at which the wall clock shows this day.
      const noon = Date.UTC(year, month, day, 12);
      const expected = new Date(noon);
      let at = noon - 26 * HOUR;
      for (;;) {
        const fields = wallTimeOf(at);
        if (fields.day === expected.getUTCDate() && fields.month === expected.getUTCMonth()) {
          return at;
        }
        at += 15 * MINUTE;
      }
    },
  };
}

function clocks(zone: string, from: string, to: string, step: number): string[] {
  return timeTicks(Date.parse(from), Date.parse(to), step, calendarOf(zone)).map((at) =>
    new Date(at).toLocaleString('sv-SE', { timeZone: zone }).slice(5, 16),
  );
}

test('day ticks are at midnight before and after a clock change', (t) => {
  for (const [zone, from, to] of [
    ['Europe/Berlin', '2026-03-27T12:00Z', '2026-03-31T12:00Z'],
    ['Europe/Berlin', '2026-10-23T12:00Z', '2026-10-27T12:00Z'],
    ['America/New_York', '2026-03-06T12:00Z', '2026-03-10T12:00Z'],
    ['Australia/Lord_Howe', '2026-04-03T12:00Z', '2026-04-07T12:00Z'],
    ['Asia/Kolkata', '2026-03-27T12:00Z', '2026-03-31T12:00Z'],
  ] as const) {
    const days = clocks(zone, from, to, DAY);
    t.is(days.length, 4, zone);
    t.true(
      days.every((text) => text.endsWith('00:00')),
      `${zone}: ${days.join()}`,
    );
    const quarters = clocks(zone, from, to, 6 * HOUR);
    t.true(
      quarters.every((text) => /(?:00|06|12|18):00$/.test(text)),
      `${zone}: ${quarters.join()}`,
    );
    t.is(quarters.filter((text) => text.endsWith('00:00')).length, 4, zone);
  }
});

test('a day without a midnight begins at its first existing time', (t) => {
  const days = clocks('America/Sao_Paulo', '2018-11-02T12:00Z', '2018-11-05T12:00Z', DAY);
  t.deepEqual(days, ['11-03 00:00', '11-04 01:00', '11-05 00:00']);
});

test('a repeated hour has two ticks, and a skipped hour has none', (t) => {
  t.deepEqual(clocks('Europe/Berlin', '2026-10-24T23:00Z', '2026-10-25T02:00Z', HOUR), [
    '10-25 01:00',
    '10-25 02:00',
    '10-25 02:00',
    '10-25 03:00',
  ]);
  t.deepEqual(clocks('Europe/Berlin', '2026-03-29T00:00Z', '2026-03-29T02:00Z', HOUR), [
    '03-29 01:00',
    '03-29 03:00',
    '03-29 04:00',
  ]);
});

test('month and year ticks are on the first day, with round steps', (t) => {
  const utc = (from: string, to: string, step: number): string[] =>
    timeTicks(Date.parse(from), Date.parse(to), step, UTC).map((at) =>
      new Date(at).toISOString().slice(0, 10),
    );
  t.deepEqual(utc('2025-11-10T00:00Z', '2026-06-01T00:00Z', 90 * DAY), [
    '2026-01-01',
    '2026-04-01',
  ]);
  t.deepEqual(utc('2018-05-01T00:00Z', '2031-01-01T00:00Z', 5 * 365 * DAY), [
    '2020-01-01',
    '2025-01-01',
    '2030-01-01',
  ]);
  t.deepEqual(utc('2026-01-30T01:00Z', '2026-02-02T00:00Z', DAY), [
    '2026-01-31',
    '2026-02-01',
    '2026-02-02',
  ]);
});

test('second and minute ticks are at round multiples, including before 1970', (t) => {
  t.deepEqual(timeTicks(61_000, 150_000, 30_000, UTC), [90_000, 120_000, 150_000]);
  t.deepEqual(timeTicks(-150_000, -60_000, MINUTE, UTC), [-120_000, -60_000]);
  t.deepEqual(timeTicks(1001, 1004, 1, UTC), [1001, 1002, 1003, 1004]);
});
