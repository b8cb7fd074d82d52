/**
 * Queries that differ in the values of their WHERE alone are one query with parameters: its tree,
 * its binding and its plan are made once. `crates/ast/src/literals.rs` says which literals those
 * are, for the session here and for the connections that the engine answers by itself.
 */
import { native, type NativeLifted } from './addon.js';
import { decodedSync } from './decode.js';

export type { NativeLifted as LiftedQuery } from './addon.js';

/** The query that a text is one of; null where nothing is taken out. */
export function liftLiterals(text: string): NativeLifted | null {
  return decodedSync(() => native.liftLiterals(text)) ?? null;
}
