/**
 * The only error this folder throws: what is wrong with the text, and where.
 */

/** A text that is not a statement. Offsets are UTF-16 units into the text as given. */
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
