/**
 * Messages from columnar protocol clients, and mutations of them. Rows have a LONG `m` whose upper
 * 48 bits are the number of their message, so a table's contents reveal which messages the rows
 * came from.
 */
import { readFileSync } from 'node:fs';

import type { Random } from '../torture/harness.js';
import { block, delta, FLAG, longs, message, row, TYPE } from './messages.js';

/** Upper half of `m` in the recorded messages. */
const MARK = Buffer.from('efbeed5e', 'hex');
const HEAD_BYTES = 12;
/** Length of the message number, which starts two bytes before the mark. */
const NUMBER_BYTES = 6;

/** Messages of one connection. */
export type Script = readonly Buffer[];

function recorded(): Script[] {
  const file = new URL('../../../test/qwp/recorded.json', import.meta.url);
  const scripts = JSON.parse(readFileSync(file, 'utf8')) as string[][];
  return scripts.map((script) => script.map((text) => Buffer.from(text, 'base64')));
}

function marks(count: number): Buffer {
  const bytes = longs(...Array.from({ length: count }, (_, at) => at));
  for (let at = 0; at < count; at += 1) {
    MARK.copy(bytes, 8 * at + 4);
  }
  return bytes;
}

/**
 * Forms that no recorded client sends: packed times, overlapping dictionaries, groups that span
 * several tables.
 */
function handMade(): Script[] {
  const packed = Buffer.concat([Buffer.from([1]), longs(1_000, 2_000), Buffer.from([0])]);
  const plain = Buffer.concat([Buffer.from([0]), longs(1, 2, 3, 4)]);
  const times = (encoded: Buffer): Buffer =>
    block('packed', 4, ['m', TYPE.long, marks(4)], ['', TYPE.timestamp, encoded]);
  const symbols = (id: number): Buffer =>
    block('groups', 2, ['s', TYPE.symbol, Buffer.from([id, 0])], ['m', TYPE.long, marks(2)]);
  const one = (table: string): Buffer => block(table, 1, ['m', TYPE.long, marks(1)]);
  return [
    [message(FLAG.gorilla, 1, times(packed)), message(FLAG.gorilla, 1, times(plain))],
    [
      message(FLAG.delta, 0, delta(0, ['a', 'b'])),
      message(FLAG.delta | FLAG.defer, 1, delta(1, ['b', 'c']), symbols(2)),
      message(FLAG.delta | FLAG.defer, 2, delta(3, []), symbols(1), one('left')),
      message(FLAG.delta, 2, delta(3, ['d']), symbols(3), one('right')),
      message(FLAG.delta, 3, delta(4, []), one('left'), one('right'), one('third')),
    ],
    [message(0, 0), message(0, 2, one('left'), row('right', 1)), message(0, 1, one('third'))],
  ];
}

export const SCRIPTS: readonly Script[] = [...recorded(), ...handMade()];
const ALL: Script = SCRIPTS.flat();

/** Numbers are far apart, so a mutated number is unlikely to equal that of another message. */
export function newNumber(random: Random): number {
  return random.between(1, 2 ** 30) * 2 ** 16 + random.between(0, 2 ** 16 - 1);
}

/** Returns the message with its number stored in its rows. */
export function numbered(bytes: Buffer, number: number): Buffer {
  const mine = Buffer.from(bytes);
  for (let at = mine.indexOf(MARK); at >= 0; at = mine.indexOf(MARK, at + 4)) {
    mine.writeUIntLE(number, at + MARK.length - NUMBER_BYTES, NUMBER_BYTES);
  }
  return mine;
}

/** Returns a message with one to three mutations. */
export function malformed(bytes: Buffer, random: Random): Buffer {
  let wrong: Buffer = Buffer.from(bytes);
  for (let times = random.between(1, 3); times > 0; times -= 1) {
    wrong = change(wrong, random);
  }
  // A valid length lets the decoder continue after the header.
  if (wrong.length >= HEAD_BYTES && random.next() < 0.9) {
    wrong.writeUInt32LE(wrong.length - HEAD_BYTES, 8);
  }
  return wrong;
}

const ODD_BYTES = [0, 1, 0x7f, 0x80, 0xff] as const;
/** Varints of 2^31, 2^63 and more, and a negative array length. */
const HUGE = ['8080808008', 'ffffffffffffffff7f', 'ffffffffffffffffff01', 'ffffffff'].map((hex) =>
  Buffer.from(hex, 'hex'),
);

function change(bytes: Buffer, random: Random): Buffer {
  const start = random.next() < 0.9 ? Math.min(HEAD_BYTES, bytes.length) : 0;
  const target = random.between(start, bytes.length);
  const before = bytes.subarray(0, target);
  const after = bytes.subarray(target);
  const cut = after.subarray(random.between(0, 9));
  switch (random.between(0, 7)) {
    case 0:
      return before;
    case 1:
      return Buffer.concat([before, cut]);
    case 2:
      return Buffer.concat([before, random.pick(HUGE), cut]);
    case 3: {
      const other = random.pick(ALL);
      const from = random.between(0, other.length);
      return Buffer.concat([before, other.subarray(from, from + random.between(1, 64)), cut]);
    }
    case 4:
      return Buffer.concat([before, bytes.subarray(random.between(0, bytes.length))]);
    case 5:
      return set(bytes, target, random.pick(ODD_BYTES));
    case 6:
      return set(bytes, target, random.between(0, 255));
    default:
      return set(bytes, target, (bytes[target] ?? 0) ^ (1 << random.between(0, 7)));
  }
}

function set(bytes: Buffer, target: number, value: number): Buffer {
  const changed = Buffer.from(bytes);
  if (target < changed.length) {
    changed[target] = value;
  }
  return changed;
}
