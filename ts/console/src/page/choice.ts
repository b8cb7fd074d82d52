/** A choice that is stored in the browser and survives reloads. */
import { createSignal, type Accessor } from 'solid-js';

/** Creates a choice among the given values; the first value is the default. */
export function storedChoice<Value extends string>(
  key: string,
  values: readonly [Value, ...Value[]],
): readonly [Accessor<Value>, (next: Value) => void] {
  const stored = localStorage.getItem(key);
  const [choice, setChoice] = createSignal<Value>(
    values.find((one) => one === stored) ?? values[0],
  );
  const choose = (next: Value): void => {
    setChoice(() => next);
    try {
      localStorage.setItem(key, next);
    } catch {
      // Storage is disabled: the choice lasts until the page is closed.
    }
  };
  return [choice, choose];
}
