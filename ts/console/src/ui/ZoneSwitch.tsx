/** Switches the time zone in which the console shows timestamps. */
import { For, type JSX } from 'solid-js';
import { setZone, zone } from '../page/zone.js';
import { texts } from '../texts.js';

export function ZoneSwitch(): JSX.Element {
  return (
    <span class="segmented" role="group" aria-label={texts.status.zone}>
      <For each={['utc', 'local'] as const}>
        {(one) => (
          <button
            title={one === 'utc' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone}
            aria-pressed={zone() === one ? 'true' : 'false'}
            onClick={() => setZone(one)}
          >
            {one === 'utc' ? 'UTC' : texts.status.local}
          </button>
        )}
      </For>
    </span>
  );
}
