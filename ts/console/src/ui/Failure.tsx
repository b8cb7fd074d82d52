/** Shows the error message of a user action. Renders nothing if the text is empty. */
import { Show, type JSX } from 'solid-js';
import { Icon } from './icons.js';

export function Failure(props: { text: string }): JSX.Element {
  return (
    <Show when={props.text}>
      <p class="error" role="alert">
        <Icon name="alert" /> <bdi>{props.text}</bdi>
      </p>
    </Show>
  );
}
