/** Toolbar controls that show whether a notebook is saved on the server, and save it. */
import { createSignal, onCleanup, onMount, Show, type JSX } from 'solid-js';
import { Icon } from '../ui/icons.js';
import type { MenuItem } from '../ui/Menu.js';
import { ShareDialog } from './ShareDialog.js';
import { VersionsDialog } from './VersionsDialog.js';
import type { NotebookSync } from './sync.js';
import type { Server } from '../state/server.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** Interval between checks for other users' versions while the notebook is visible. */
const POLL_MS = 30_000;

const [shown, show] = createSignal<'versions' | 'share'>();

/** Menu actions for a notebook that is saved on the server. */
export function savedItems(sync: NotebookSync): MenuItem[] {
  const { savedNotebook } = sync;
  if (savedNotebook === undefined || savedNotebook.access === 'read') {
    return [];
  }
  return [
    { label: texts.saving.versions, divider: true, run: () => show('versions') },
    ...(savedNotebook.access === 'own'
      ? [{ label: texts.common.share, run: () => show('share') }]
      : []),
  ];
}

export function SavedTools(props: { sync: NotebookSync; server: Server }): JSX.Element {
  const { sync } = props;
  onMount(() => {
    const poll = (): void => void sync.poll();
    poll();
    const timer = setInterval(poll, POLL_MS);
    document.addEventListener('visibilitychange', poll);
    onCleanup(() => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', poll);
      show(undefined);
    });
  });
  const isReader = (): boolean => sync.savedNotebook?.access === 'read';
  const stateText = (): string => {
    const { savedNotebook } = sync;
    if (savedNotebook === undefined) {
      return texts.saving.onlyInBrowser;
    }
    if (!sync.isChanged) {
      return fill(texts.common.version, { version: savedNotebook.version });
    }
    return savedNotebook.access === 'read'
      ? texts.saving.changedLocally
      : fill(texts.saving.changedSinceVersion, { version: savedNotebook.version });
  };
  return (
    <Show when={props.server.storesNotebooks && !props.server.isReadOnly}>
      <span class="saved-state">{stateText()}</span>
      <button
        class="button small"
        title={isReader() ? texts.saving.saveCopyHint : texts.saving.saveHint}
        disabled={sync.isSaving() || !sync.isChanged}
        onClick={() => void sync.save()}
      >
        <Show when={sync.isSaving()}>
          <Icon name="running" class="spin" />
        </Show>
        {isReader() ? texts.saving.saveACopy : texts.saving.save}
      </button>
      <Show when={shown() === 'versions' && sync.savedNotebook}>
        {(savedNotebook) => (
          <VersionsDialog sync={sync} id={savedNotebook().id} onClose={() => show(undefined)} />
        )}
      </Show>
      <Show when={shown() === 'share' && sync.savedNotebook}>
        {(savedNotebook) => (
          <ShareDialog
            id={savedNotebook().id}
            title={savedNotebook().title}
            onClose={() => show(undefined)}
          />
        )}
      </Show>
    </Show>
  );
}
