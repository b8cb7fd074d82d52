/** Toolbar of a notebook: whether it is saved on the server, and the button that saves it. */
import { createSignal, onCleanup, onMount, Show, type JSX } from 'solid-js';
import { Icon } from '../ui/icons.js';
import type { MenuItem } from '../ui/Menu.js';
import { ShareDialog } from './ShareDialog.js';
import { VersionsDialog } from './VersionsDialog.js';
import type { Keeper } from './keeper.js';
import type { Server } from '../state/server.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** Interval between checks for other users' versions while the notebook is visible. */
const LOOK_MS = 30_000;

const [shown, show] = createSignal<'versions' | 'share'>();

/** Menu actions on a notebook that is saved on the server. */
export function keptItems(keeper: Keeper): MenuItem[] {
  const { kept } = keeper;
  if (kept === undefined || kept.access === 'read') {
    return [];
  }
  return [
    { label: texts.saving.versions, apart: true, run: () => show('versions') },
    ...(kept.access === 'own' ? [{ label: texts.common.share, run: () => show('share') }] : []),
  ];
}

export function KeptTools(props: { keeper: Keeper; server: Server }): JSX.Element {
  const { keeper } = props;
  onMount(() => {
    const look = (): void => void keeper.look();
    look();
    const timer = setInterval(look, LOOK_MS);
    document.addEventListener('visibilitychange', look);
    onCleanup(() => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', look);
      show(undefined);
    });
  });
  const isReader = (): boolean => keeper.kept?.access === 'read';
  const says = (): string => {
    const { kept } = keeper;
    if (kept === undefined) {
      return texts.saving.onlyInBrowser;
    }
    if (!keeper.isChanged) {
      return fill(texts.common.version, { version: kept.version });
    }
    return kept.access === 'read'
      ? texts.saving.changedLocally
      : fill(texts.saving.changedSinceVersion, { version: kept.version });
  };
  return (
    <Show when={props.server.keepsNotebooks && !props.server.isReadOnly}>
      <span class="kept-state">{says()}</span>
      <button
        class="button small"
        title={isReader() ? texts.saving.saveCopyHint : texts.saving.saveHint}
        disabled={keeper.isSaving() || !keeper.isChanged}
        onClick={() => void keeper.save()}
      >
        <Show when={keeper.isSaving()}>
          <Icon name="running" class="spin" />
        </Show>
        {isReader() ? texts.saving.saveACopy : texts.saving.save}
      </button>
      <Show when={shown() === 'versions' && keeper.kept}>
        {(kept) => (
          <VersionsDialog keeper={keeper} id={kept().id} onClose={() => show(undefined)} />
        )}
      </Show>
      <Show when={shown() === 'share' && keeper.kept}>
        {(kept) => (
          <ShareDialog id={kept().id} title={kept().title} onClose={() => show(undefined)} />
        )}
      </Show>
    </Show>
  );
}
