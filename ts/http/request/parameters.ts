/**
 * Parses query strings and form bodies. If a name is repeated, the last value wins; `+` is a space,
 * and text must be valid UTF-8. Names are untrusted input, so they are stored in a `Map`, never in
 * an object.
 */

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Maximum input length, in characters, up to which the built-in decoder is faster. */
const MAX_AT_ONCE = 4096;

/** Valid switch values in lower case; only `true` enables a switch. */
const SWITCH_VALUES: ReadonlySet<string> = new Set(['', 'true', 'false', '1', '0']);

export class Parameters {
  readonly #values = new Map<string, string>();
  readonly #invalid = new Set<string>();

  get(name: string): string | undefined {
    return this.#values.get(name);
  }

  /** Whether a switch is on: only `true`, in upper or lower case, turns it on; `1` does not. */
  isTrue(name: string): boolean {
    return this.#values.get(name)?.toLowerCase() === 'true';
  }

  /** Returns the error for the first invalid switch; `null` if all are valid. */
  wrongSwitch(names: readonly string[]): string | null {
    // Most requests have only the `query` parameter, so there is nothing to check.
    if (this.#values.size > 1) {
      for (const name of names) {
        const value = this.#values.get(name) ?? '';
        if (!SWITCH_VALUES.has(value.toLowerCase())) {
          return `invalid ${name} '${value}': expected true or false`;
        }
      }
    }
    return null;
  }

  /** Whether the value is not valid UTF-8. */
  isInvalid(name: string): boolean {
    return this.#invalid.has(name);
  }

  set(name: string, value: string): void {
    this.#values.set(name, value);
  }

  /** Adds the pairs of `a=b&c=d`; `encoded` has one byte per character. */
  addEncoded(encoded: string): void {
    let from = 0;
    while (from < encoded.length) {
      const at = encoded.indexOf('&', from);
      const end = at < 0 ? encoded.length : at;
      if (end > from) {
        this.#addPair(encoded.slice(from, end));
      }
      from = end + 1;
    }
  }

  toSearchParams(): URLSearchParams {
    return new URLSearchParams([...this.#values]);
  }

  #addPair(pair: string): void {
    const at = pair.indexOf('=');
    const name = decode(at < 0 ? pair : pair.slice(0, at)).text;
    const { text, valid } = decode(at < 0 ? '' : pair.slice(at + 1));
    this.#values.set(name, text);
    if (valid) {
      this.#invalid.delete(name);
    } else {
      this.#invalid.add(name);
    }
  }
}

const ASCII = /^[\x00-\x7f]*$/;

function decode(encoded: string): { text: string; valid: boolean } {
  if (encoded.length <= MAX_AT_ONCE && ASCII.test(encoded)) {
    try {
      return { text: decodeURIComponent(encoded.replaceAll('+', ' ')), valid: true };
    } catch {
      // Errors are handled below.
    }
  }
  const bytes = percentDecode(encoded);
  if (bytes === null) {
    return { text: encoded.replaceAll('+', ' '), valid: false };
  }
  try {
    return { text: UTF8.decode(bytes), valid: true };
  } catch {
    return { text: bytes.toString('utf8'), valid: false };
  }
}

/** The value of a hexadecimal digit in ASCII; NaN for anything else. */
function hexDigit(code = 0): number {
  if (code >= 0x30 && code <= 0x39) {
    return code - 0x30;
  }
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN;
}

/** Percent-decodes text, with plus as a space; returns `null` for `%zz` and truncated escapes. */
function percentDecode(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'latin1');
  let at = 0;
  let length = 0;
  while (at < bytes.length) {
    const byte = bytes[at] ?? 0;
    if (byte !== 0x25) {
      bytes[length++] = byte === 0x2b ? 0x20 : byte;
      at += 1;
      continue;
    }
    // Decoding in place is safe, because an escape is longer than the byte that replaces it.
    const value = 16 * hexDigit(bytes[at + 1]) + hexDigit(bytes[at + 2]);
    if (Number.isNaN(value)) {
      return null;
    }
    bytes[length++] = value;
    at += 3;
  }
  return bytes.subarray(0, length);
}
