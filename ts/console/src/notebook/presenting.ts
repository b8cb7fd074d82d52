/**
 * Tracks whether the active notebook is being presented. The state is stored in the URL, so that a
 * link can open a presentation.
 */
import { createSignal } from 'solid-js';

const NAME = 'present';
const [presenting, setPresenting] = createSignal(parameters().has(NAME));
export { presenting };

export function present(isOn: boolean): void {
  const given = parameters();
  given.delete(NAME);
  if (isOn) {
    given.set(NAME, '');
  }
  const text = given.toString().replace(/=(?=&|$)/g, '');
  history.replaceState(null, '', location.pathname + (text && `?${text}`) + location.hash);
  setPresenting(isOn);
}

function parameters(): URLSearchParams {
  return new URLSearchParams(location.search);
}
