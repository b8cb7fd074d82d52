/** Decodes native errors, which are JSON objects, into `DatabaseError`. */
import { DatabaseError, type ErrorFields } from './error.js';
import { ERROR_CODES } from '../border/types.generated.js';

/** Counterpart of `ErrorFields` as `native` writes it, with nullable members. */
type NativeErrorFields = { readonly [K in keyof ErrorFields]: ErrorFields[K] | null };

const KNOWN_CODES: ReadonlySet<string> = new Set(ERROR_CODES);

/** Awaits a native promise, and decodes its error. */
export async function decoded<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw asEngineError(error);
  }
}

/** Makes a synchronous native call, and decodes its error. */
export function decodedSync<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw asEngineError(error);
  }
}

/** Parses the error object in the message; any other message is an internal error. */
export function asEngineError(error: unknown): DatabaseError {
  const text = error instanceof Error ? error.message : String(error);
  const fields = parseFields(text);
  if (fields === undefined) {
    return new DatabaseError({ code: 'Internal', message: text }, { cause: error });
  }
  return new DatabaseError({
    code: fields.code ?? 'Internal',
    message: fields.message ?? text,
    start: fields.start ?? undefined,
    end: fields.end ?? undefined,
    detail: fields.detail ?? undefined,
    hint: fields.hint ?? undefined,
    retryable: fields.retryable ?? false,
  });
}

function parseFields(text: string): NativeErrorFields | undefined {
  try {
    const fields = JSON.parse(text) as Partial<NativeErrorFields> | null;
    const isOurs = typeof fields === 'object' && KNOWN_CODES.has(String(fields?.code));
    return isOurs ? (fields as NativeErrorFields) : undefined;
  } catch {
    return undefined;
  }
}
