/**
 * Treats queries that differ only in the literals of their WHERE clause as one parameterised query.
 * The tree, binding and plan of this query are created only once. `crates/ast/src/literals.rs`
 * determines which literals become parameters, both for sessions and for handed-off connections.
 */
import { native, type NativeLifted } from './addon.js';
import { decodedSync } from './decode.js';

export type { NativeLifted as LiftedQuery } from './addon.js';

/** Replaces a query's literals with parameters; returns `null` if there are none to replace. */
export function liftLiterals(text: string): NativeLifted | null {
  return decodedSync(() => native.liftLiterals(text)) ?? null;
}
