/**
 * Computes the ticks of a time axis at round times of the displayed time zone. A day begins at
 * local midnight, even if a clock change makes it 23 or 25 hours long.
 */

/** Converts between timestamps and the wall-clock time of a time zone. */
export interface Calendar {
  readonly wallTimeOf: (at: number) => WallTime;
  /** Returns the start of a day. Months count from 0. Days and months out of range roll over. */
  readonly dayStart: (year: number, month: number, day: number) => number;
}

interface WallTime {
  readonly year: number;
  /** Month of the year, from 0 to 11. */
  readonly month: number;
  readonly day: number;
  /** Wall-clock time of day, in milliseconds. */
  readonly clock: number;
}

export const UTC: Calendar = {
  wallTimeOf: (at) => {
    const date = new Date(at);
    return {
      year: date.getUTCFullYear(),
      month: date.getUTCMonth(),
      day: date.getUTCDate(),
      clock: at - Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()),
    };
  },
  dayStart: (year, month, day) => Date.UTC(year, month, day),
};

/**
 * A date whose local time is UTC, for libraries that read the local time of dates. An ordinary date
 * shifted by the UTC offset would be wrong in hours that the browser's time zone skips.
 */
export class UtcDate extends Date {
  override getFullYear(): number {
    return this.getUTCFullYear();
  }
  override getMonth(): number {
    return this.getUTCMonth();
  }
  override getDate(): number {
    return this.getUTCDate();
  }
  override getDay(): number {
    return this.getUTCDay();
  }
  override getHours(): number {
    return this.getUTCHours();
  }
  override getMinutes(): number {
    return this.getUTCMinutes();
  }
  override getSeconds(): number {
    return this.getUTCSeconds();
  }
  override getMilliseconds(): number {
    return this.getUTCMilliseconds();
  }
}

/** Calendar of the browser's time zone. */
export const LOCAL: Calendar = {
  wallTimeOf: (at) => {
    const date = new Date(at);
    const minutes = date.getHours() * 60 + date.getMinutes();
    return {
      year: date.getFullYear(),
      month: date.getMonth(),
      day: date.getDate(),
      clock: (minutes * 60 + date.getSeconds()) * 1000 + date.getMilliseconds(),
    };
  },
  dayStart: (year, month, day) => new Date(year, month, day).getTime(),
};

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const MONTH = 28 * DAY;
export const YEAR = 365 * DAY;

/** All UTC offsets are multiples of this duration. */
const QUARTER = 15 * MINUTE;
const USUAL_MONTH = 30 * DAY;

/** Computes ticks about `step` milliseconds apart, at round times of the calendar's time zone. */
export function timeTicks(min: number, max: number, step: number, calendar: Calendar): number[] {
  const ticks =
    step >= DAY ? calendarTicks(min, max, step, calendar) : clockTicks(min, max, step, calendar);
  return ticks.filter((at) => at >= min && at <= max);
}

/** Computes ticks at wall-clock times that are multiples of the step. */
function clockTicks(min: number, max: number, step: number, { wallTimeOf }: Calendar): number[] {
  const grain = Math.min(step, QUARTER);
  const ticks: number[] = [];
  for (let at = Math.ceil(min / grain) * grain; at <= max; at += grain) {
    if (wallTimeOf(at).clock % step === 0) {
      ticks.push(at);
    }
  }
  return ticks;
}

/** Computes ticks at the start of days, months or years, depending on the step. */
function calendarTicks(min: number, max: number, step: number, calendar: Calendar): number[] {
  const { year, month, day } = calendar.wallTimeOf(min);
  const count = (unit: number): number => Math.max(1, Math.round(step / unit));
  const dateAt = (index: number): [year: number, month: number, day: number] => {
    if (step >= YEAR) {
      const years = count(YEAR);
      return [Math.floor(year / years) * years + index * years, 0, 1];
    }
    if (step >= MONTH) {
      const months = count(USUAL_MONTH);
      return [year, Math.floor(month / months) * months + index * months, 1];
    }
    return [year, month, day + index * count(DAY)];
  };
  const ticks: number[] = [];
  for (let index = 0; ; index++) {
    const at = calendar.dayStart(...dateAt(index));
    if (!(at <= max)) {
      return ticks;
    }
    ticks.push(at);
  }
}
