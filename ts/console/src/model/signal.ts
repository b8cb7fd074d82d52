/** Signals as single values, for class fields. */
import { createSignal, type Accessor } from 'solid-js';

/** Calling the signal reads it; `set` writes it. */
interface Signal<T> extends Accessor<T> {
  readonly set: (value: T) => void;
}

export function signal<T>(value: T): Signal<T> {
  const [read, write] = createSignal(value);
  return Object.assign(read, { set: (next: T) => void write(() => next) });
}

/** A number that is incremented by each call to `bump`. */
export function counter(): Accessor<number> & { readonly bump: () => void } {
  const [read, write] = createSignal(0);
  return Object.assign(read, { bump: () => void write((count) => count + 1) });
}
