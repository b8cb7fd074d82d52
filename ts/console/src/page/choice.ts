/** A choice that is kept in the browser, over reloads. */
import { createSignal, type Accessor } from 'solid-js';

/** One of some values; the first until another is chosen. */
export function keptChoice<Value extends string>(
  key: string,
  values: readonly [Value, ...Value[]],
): readonly [Accessor<Value>, (next: Value) => void] {
  const kept = localStorage.getItem(key);
  const [choice, setChoice] = createSignal<Value>(values.find((one) => one === kept) ?? values[0]);
  const choose = (next: Value): void => {
    setChoice(() => next);
    try {
      localStorage.setItem(key, next);
    } catch {
      // Switched off: it holds until the page goes.
    }
  };
  return [choice, choose];
}
