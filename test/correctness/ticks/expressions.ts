/** Interval expressions in the documented grammar, and some that violate it slightly. */
import type { Random } from '../../torture/harness.js';

const ZONES = [
  'UTC',
  'GMT',
  'Z',
  '+03:00',
  '-05:00',
  '+0530',
  '-03',
  'Europe/Berlin',
  'Europe/London',
  'America/New_York',
  'america/sao_paulo',
  'Asia/Tokyo',
  'Asia/Kolkata',
  'Australia/Sydney',
  'CET',
  'EST',
  'PDT',
];
const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun', 'Monday', 'friday', 'SUNDAY'];
/** Days near a clock change, the end of February, or the end of the year. */
const EDGES = [
  '2024-02-28',
  '2024-02-29',
  '2023-02-28',
  '2024-03-10',
  '2024-03-31',
  '2024-10-27',
  '2024-11-03',
  '2024-12-31',
  '2025-01-01',
  '1970-01-01',
  '1969-12-31',
];

const two = (number: number): string => String(number).padStart(2, '0');

interface Expression {
  readonly text: string;
  /**
   * Whether a character was added, removed or changed. If so, the expression may not follow the
   * grammar.
   */
  readonly isMalformed: boolean;
}

/** Generates expressions one after another. */
export class TickExpressions {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  next(): Expression {
    const text = this.#expression();
    const isMalformed = this.#random.next() < 0.05;
    return { text: isMalformed ? this.#malformed(text) : text, isMalformed };
  }

  #expression(): string {
    const kinds: readonly (() => string)[] = [
      () => this.#literal(),
      () => `${this.#literal()}${this.#suffixes()}`,
      () => `${this.#day()}T${this.#times()}${this.#suffixes()}`,
      () => `${this.#bracketed()}${this.#suffixes()}`,
      () => `${this.#bracketed()}T${this.#times()}${this.#suffixes()}`,
      () => `${this.#list()}${this.#maybe(0.5, () => `T${this.#times()}`)}${this.#suffixes()}`,
      () => `${this.#week()}${this.#suffixes()}`,
      () => `[${this.#period()}]${this.#suffixes()}`,
      () => `${this.#period()}T${this.#times()}${this.#suffixes()}`,
      () => this.#relative(),
      () => this.#relative(),
    ];
    return this.#random.pick(kinds)();
  }

  #maybe(chance: number, part: () => string): string {
    return this.#random.next() < chance ? part() : '';
  }

  #year(): string {
    return String(this.#random.between(2019, 2027));
  }

  #month(): string {
    return two(this.#random.between(1, 12));
  }

  #day(): string {
    if (this.#random.next() < 0.2) {
      return this.#random.pick(EDGES);
    }
    return `${this.#year()}-${this.#month()}-${two(this.#random.between(1, 28))}`;
  }

  #period(): string {
    return `${this.#year()}${this.#maybe(0.8, () => `-${this.#month()}`)}`;
  }

  #time(): string {
    const hour = two(this.#random.between(0, 23));
    const minute = (): string => `:${two(this.#random.between(0, 59))}`;
    const fraction = (): string => `.${this.#digits(this.#random.between(1, 9))}`;
    const second = (): string => `${minute()}${this.#maybe(0.2, fraction)}`;
    return `${hour}${this.#maybe(0.9, () => `${minute()}${this.#maybe(0.15, second)}`)}`;
  }

  #digits(count: number): string {
    return Array.from({ length: count }, () => this.#random.between(0, 9)).join('');
  }

  /** A time with some fields in brackets, or a list of times. */
  #times(): string {
    const roll = this.#random.next();
    if (roll < 0.7) {
      return this.#time();
    }
    if (roll < 0.8) {
      return `${this.#choices(0, 23)}:${two(this.#random.between(0, 59))}`;
    }
    if (roll < 0.85) {
      return `${two(this.#random.between(0, 23))}:${this.#choices(0, 59)}`;
    }
    const zone = (): string => `@${this.#random.pick(ZONES)}`;
    const zoned = this.#random.next() < 0.3;
    const clock = (): string =>
      `${two(this.#random.between(0, 23))}:${two(this.#random.between(0, 59))}`;
    const time = (): string => `${clock()}${zoned ? zone() : ''}`;
    return `[${this.#several(1, 3, time).join(',')}]`;
  }

  #several(low: number, high: number, item: () => string): string[] {
    return Array.from({ length: this.#random.between(low, high) }, item);
  }

  /** `[05,10..12, 20]` */
  #choices(low: number, high: number): string {
    const blank = this.#random.next() < 0.1 ? ' ' : '';
    const number = (from: number): number => this.#random.between(from, Math.min(high, from + 4));
    const item = (): string => {
      const first = this.#random.between(low, high);
      const shown = this.#random.next() < 0.2 ? String(first) : two(first);
      return `${blank}${shown}${this.#maybe(0.4, () => `..${two(number(first))}`)}${blank}`;
    };
    return `[${this.#several(1, 3, item).join(',')}]`;
  }

  #bracketed(): string {
    const month = (): string => (this.#random.next() < 0.4 ? this.#choices(1, 12) : this.#month());
    const roll = this.#random.next();
    if (roll < 0.2) {
      return `${this.#year()}-${this.#choices(1, 12)}`;
    }
    const day = roll < 0.4 ? two(this.#random.between(1, 28)) : this.#choices(1, 28);
    return `${this.#year()}-${month()}-${day}`;
  }

  #literal(): string {
    const date = [
      () => this.#year(),
      () => `${this.#year()}-${this.#month()}`,
      () => this.#day(),
      () => `${this.#day()}T${this.#time()}`,
      () => `${this.#day()}T${this.#time()}`,
    ];
    return this.#random.pick(date)();
  }

  #list(): string {
    const zone = (): string => `@${this.#random.pick(ZONES)}`;
    const time = (): string => `T${this.#time()}`;
    const element = (): string => {
      const roll = this.#random.next();
      if (roll < 0.5) {
        return `${this.#day()}${this.#maybe(0.1, time)}${this.#maybe(0.15, zone)}`;
      }
      if (roll < 0.65) {
        return this.#period();
      }
      if (roll < 0.8) {
        return this.#bracketed();
      }
      return roll < 0.9 ? this.#week() : this.#variable();
    };
    const separator = this.#random.next() < 0.2 ? ', ' : ',';
    return `[${this.#several(1, 4, element).join(separator)}]`;
  }

  #week(): string {
    const week =
      this.#random.next() < 0.3 ? this.#choices(1, 52) : two(this.#random.between(1, 53));
    const day = (): string =>
      this.#random.next() < 0.4
        ? `-[${this.#several(1, 3, () => String(this.#random.between(1, 7))).join(',')}]`
        : `-${this.#random.between(1, 7)}${this.#maybe(0.5, () => `T${this.#time()}`)}`;
    return `${this.#year()}-W${week}${this.#maybe(0.6, day)}`;
  }

  /** `@zone`, `#filter` and `;duration`, each optional. */
  #suffixes(): string {
    const zone = this.#maybe(0.3, () => `@${this.#random.pick(ZONES)}`);
    const filter = this.#maybe(0.3, () => `#${this.#filter()}`);
    return `${zone}${filter}${this.#maybe(0.5, () => this.#duration())}`;
  }

  #filter(): string {
    const day = (): string => this.#random.pick(DAYS);
    const days = (): string => this.#several(1, 3, day).join(',');
    return this.#random.pick([() => 'workday', () => 'wd', () => 'weekend', days, days])();
  }

  #duration(): string {
    const units = ['h', 'm', 's', 'd', 'T', 'u', 'n', 'w'];
    const part = (): string => `${this.#random.between(1, 90)}${this.#random.pick(units)}`;
    const usual = ['1h', '6h30m', '30m', '1d', '2d', '1w', '1M', '1y', '90s', '500T', '8h', '0h'];
    const length =
      this.#random.next() < 0.7 ? this.#random.pick(usual) : this.#several(1, 3, part).join('');
    const period = (): string => {
      const sign = this.#random.next() < 0.1 ? '-' : '';
      const step = this.#random.pick(['1d', '7d', '1h', '90m', '1M', '3M', '1y', '2d', '45s']);
      return `;${sign}${step};${this.#random.between(1, 8)}`;
    };
    return `;${length}${this.#maybe(0.25, period)}`;
  }

  #variable(): string {
    const name = this.#random.pick([
      '$today',
      '$today',
      '$now',
      '$yesterday',
      '$tomorrow',
      '$TODAY',
    ]);
    const blank = this.#random.next() < 0.3 ? ' ' : '';
    const unit = ['d', 'd', 'bd', 'bd', 'h', 'm', 's', 'w', 'M', 'y', 'T', 'u'];
    const move = (): string => {
      const sign = this.#random.pick(['+', '-']);
      return `${blank}${sign}${blank}${this.#random.between(0, 12)}${this.#random.pick(unit)}`;
    };
    return `${name}${this.#maybe(0.6, move)}`;
  }

  /** Expressions that depend on the clock. */
  #relative(): string {
    const range = (): string => `${this.#variable()}..${this.#variable()}`;
    const days = (): string =>
      `$today-${this.#random.between(1, 9)}${this.#random.pick(['d', 'bd', 'w'])}..$today`;
    const either = (): string => (this.#random.next() < 0.5 ? range() : days());
    const time = (): string => this.#maybe(0.4, () => `T${this.#time()}`);
    return this.#random.pick([
      () => this.#variable(),
      () => `${this.#variable()}${this.#suffixes()}`,
      () => `${this.#variable()}T${this.#time()}${this.#suffixes()}`,
      either,
      () => `[${either()}]${time()}${this.#suffixes()}`,
      () =>
        `[${this.#several(1, 3, () => this.#variable()).join(', ')}]${time()}${this.#suffixes()}`,
    ])();
  }

  /** Adds, removes or changes one character. */
  #malformed(text: string): string {
    const at = this.#random.between(0, Math.max(0, text.length - 1));
    const other = this.#random.pick('[]@#;,.-+0T$9: Wxbd'.split(''));
    return this.#random.pick([
      text.slice(0, at) + text.slice(at + 1),
      text.slice(0, at) + other + text.slice(at),
      text.slice(0, at) + other + text.slice(at + 1),
    ]);
  }
}

/** Whether the meaning of a string depends on the current time or date. */
export function isRelative(text: string): boolean {
  return text.includes('$');
}
