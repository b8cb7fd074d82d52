/** In which time zone times are shown. */
import { For, type JSX } from 'solid-js';
import type { Session } from '../state/session.js';

export function ZoneSwitch(props: { session: Session }): JSX.Element {
  return (
    <span class="segmented" role="group" aria-label="Time zone of displayed times">
      <For each={['utc', 'local'] as const}>
        {(zone) => (
          <button
            title={zone === 'utc' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone}
            aria-pressed={props.session.zone() === zone ? 'true' : 'false'}
            onClick={() => props.session.setZone(zone)}
          >
            {zone === 'utc' ? 'UTC' : 'Local'}
          </button>
        )}
      </For>
    </span>
  );
}
