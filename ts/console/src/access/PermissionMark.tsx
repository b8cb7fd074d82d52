/**
 * Icon that shows how a permission is held. Its shape always differs, so colour is never the only
 * cue.
 */
import { Show, type JSX } from 'solid-js';
import type { Mark } from './model.js';

/** Marks of permissions that the principal holds without a direct grant. */
const TICKED: ReadonlySet<Mark> = new Set(['inherited', 'group', 'administrator']);
const TICK = 'M4.8 8.3l2.2 2.2 4.2-4.8';

export function PermissionMark(props: { mark: Mark }): JSX.Element {
  const isFilled = (): boolean => props.mark === 'granted' || props.mark === 'option';
  return (
    <svg class={`icon mark-${props.mark}`} viewBox="0 0 16 16" aria-hidden="true">
      <rect x="2" y="2" width="12" height="12" rx="2.5" classList={{ solid: isFilled() }} />
      <Show when={props.mark === 'part'}>
        <path class="solid" d="M3 3h5v10H3z" />
      </Show>
      <Show when={isFilled() || TICKED.has(props.mark)}>
        <path class="tick" d={TICK} />
      </Show>
      <Show when={props.mark === 'option'}>
        <path d="M14 0v4M12 2h4" />
      </Show>
    </svg>
  );
}
