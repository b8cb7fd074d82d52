/** The only error type in this folder: a message and its position in the SQL text. */

/** Causes of an error: invalid text, or a combination or a name that the text must not contain. */
export type ParseErrorCode = 'Syntax' | 'NotSupported' | 'TableNotFound';

/** An invalid statement. Offsets are UTF-16 code units in the original text. */
export class SyntaxError_ extends Error {
  readonly start: number;
  readonly end: number;
  readonly code: ParseErrorCode;

  constructor(
    message: string,
    start: number,
    end: number = start,
    code: ParseErrorCode = 'Syntax',
  ) {
    super(message);
    this.code = code;
    this.name = 'SyntaxError';
    this.start = start;
    this.end = Math.max(start, end);
  }
}
