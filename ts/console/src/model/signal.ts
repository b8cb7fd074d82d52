/** Signals as single objects, so that they can be class fields. */
import { createSignal, type Accessor } from 'solid-js';

/** A signal. A call of the signal reads its value, and `set` changes the value. */
interface Signal<T> extends Accessor<T> {
  readonly set: (value: T) => void;
}

export function signal<T>(value: T): Signal<T> {
  const [read, write] = createSignal(value);
  return Object.assign(read, { set: (next: T) => void write(() => next) });
}

/** Creates a signal with a number that each call to `bump` increments. */
export function counter(): Accessor<number> & { readonly bump: () => void } {
  const [read, write] = createSignal(0);
  return Object.assign(read, { bump: () => void write((count) => count + 1) });
}
