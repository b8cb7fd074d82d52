/** Search field that filters the list below it. */
import type { JSX } from 'solid-js';
import { Icon } from '../ui/icons.js';

export function SearchField(props: {
  readonly placeholder: string;
  /** Accessible name of the field. Defaults to the placeholder. */
  readonly label?: string;
  readonly class?: string;
  readonly search: (text: string) => void;
}): JSX.Element {
  return (
    <label class={props.class === undefined ? 'field' : `field ${props.class}`}>
      <Icon name="search" />
      <input
        type="search"
        placeholder={props.placeholder}
        aria-label={props.label ?? props.placeholder}
        onInput={(event) => props.search(event.currentTarget.value)}
      />
    </label>
  );
}
