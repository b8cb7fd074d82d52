/** The only error type in this folder: a message and its position in the SQL text. */

/** An invalid statement. Offsets are UTF-16 code units in the original text. */
export class SyntaxError_ extends Error {
  readonly start: number;
  readonly end: number;

  constructor(message: string, start: number, end: number = start) {
    super(message);
    this.name = 'SyntaxError';
    this.start = start;
    this.end = Math.max(start, end);
  }
}
