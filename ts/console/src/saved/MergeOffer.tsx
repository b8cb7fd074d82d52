/** Reports that another user has saved the notebook, and offers to merge both versions. */
import { createMemo, createSignal, createUniqueId, For, onMount, Show, type JSX } from 'solid-js';
import type { Opened } from '../api/notebooks.js';
import { read, write } from '../cells/file.js';
import type { Notebook } from '../cells/model.js';
import { Icon } from '../ui/icons.js';
import type { NotebookSync } from './sync.js';
import { merge, type Choice, type Conflict, type Merge } from './merge.js';
import { fill, fillNodes } from '../fill.js';
import { countText } from '../model/format.js';
import { texts } from '../texts.js';

interface OfferProps {
  readonly sync: NotebookSync;
  /** The notebook in the tab; `undefined` if the console cannot parse the tab's text. */
  readonly mine: Notebook | undefined;
}

export function MergeOffer(props: OfferProps): JSX.Element {
  const { sync } = props;
  const [isMerging, setMerging] = createSignal(false);
  return (
    <Show when={sync.newer()}>
      {(newer) => (
        <div class="notebook-note" role="alert">
          <Icon name="alert" />
          <span>
            <b>
              {fillNodes(texts.merge.newerVersion, {
                user: <bdi>{newer().changedBy}</bdi>,
                version: newer().version,
              })}
            </b>{' '}
            {sync.isChanged ? texts.merge.youChanged : texts.merge.youView}
          </span>
          <span class="spring" />
          <Show
            when={sync.isChanged}
            fallback={
              <button class="button small" onClick={() => sync.takeTheirs()}>
                {texts.merge.showNewVersion}
              </button>
            }
          >
            <button class="button small" onClick={() => sync.takeTheirs()}>
              {texts.merge.useTheirs}
            </button>
            <Show when={sync.savedNotebook?.access !== 'read' && mergeOf(props, newer())}>
              {(merged) => (
                <>
                  <button class="button small primary" onClick={() => setMerging(true)}>
                    {texts.merge.merge}
                  </button>
                  <Show when={isMerging()}>
                    <MergeDialog
                      sync={sync}
                      newer={newer()}
                      merge={merged()}
                      onClose={() => setMerging(false)}
                    />
                  </Show>
                </>
              )}
            </Show>
          </Show>
        </div>
      )}
    </Show>
  );
}

/** Merges the tab's notebook with the newer version; `undefined` if a text cannot be parsed. */
function mergeOf({ sync, mine }: OfferProps, newer: Opened): Merge | undefined {
  const base = notebookOf(sync.savedNotebook?.text ?? '');
  const theirs = notebookOf(newer.text);
  return base && mine && theirs ? merge(base, mine, theirs) : undefined;
}

function notebookOf(text: string): Notebook | undefined {
  try {
    return read(text);
  } catch {
    return undefined;
  }
}

function MergeDialog(props: {
  sync: NotebookSync;
  newer: Opened;
  merge: Merge;
  onClose: () => void;
}): JSX.Element {
  let dialog!: HTMLDialogElement;
  const title = createUniqueId();
  const [choices, setChoices] = createSignal<ReadonlyMap<string, Choice>>(new Map());
  const open = createMemo(
    () => props.merge.conflicts.filter(({ key }) => !choices().has(key)).length,
  );
  onMount(() => dialog.showModal());
  const save = (): void => {
    dialog.close();
    void props.sync.saveMerged(write(props.merge.merged(choices())));
  };
  return (
    <dialog
      ref={dialog}
      class="dialog wide merge"
      aria-labelledby={title}
      onClose={() => props.onClose()}
    >
      <header>
        <h2 id={title}>
          {fillNodes(texts.merge.title, {
            version: props.newer.version,
            user: <bdi>{props.newer.changedBy}</bdi>,
          })}
        </h2>
      </header>
      <p>{fits(props.merge, props.newer.changedBy)}</p>
      <div class="merge-conflicts">
        <For each={props.merge.conflicts}>
          {(conflict) => (
            <ConflictChoice
              conflict={conflict}
              by={props.newer.changedBy}
              chosen={choices().get(conflict.key)}
              choose={(choice) => setChoices(new Map(choices()).set(conflict.key, choice))}
            />
          )}
        </For>
      </div>
      <div class="confirm-actions">
        <button class="button" onClick={() => dialog.close()}>
          {texts.common.cancel}
        </button>
        <button class="button primary" disabled={open() > 0} onClick={save}>
          {texts.merge.saveMergedVersion}
        </button>
      </div>
    </dialog>
  );
}

function fits({ conflicts, mine, theirs }: Merge, by: string): string {
  const parts = (count: number): string => countText(count, texts.merge.parts);
  const both =
    conflicts.length === 0
      ? texts.merge.noConflicts
      : countText(conflicts.length, texts.merge.conflicts);
  const kept = fill(texts.merge.bothKept, { mine: parts(mine), user: by, theirs: parts(theirs) });
  return `${kept} ${both}`;
}

const CHOICES: readonly (readonly [Choice, string])[] = [
  ['mine', texts.merge.mine],
  ['theirs', texts.merge.theirs],
  ['both', texts.merge.both],
];

function ConflictChoice(props: {
  conflict: Conflict;
  by: string;
  chosen: Choice | undefined;
  choose: (choice: Choice) => void;
}): JSX.Element {
  const name = createUniqueId();
  const offered = (): readonly (readonly [Choice, string])[] =>
    CHOICES.filter(([choice]) => choice !== 'both' || props.conflict.canKeepBoth);
  return (
    <fieldset>
      <legend>
        <bdi>{props.conflict.label}</bdi>
      </legend>
      <div class="merge-sides">
        <Side name={texts.merge.mine} text={props.conflict.mine} />
        <Side name={fill(texts.merge.theirsOf, { user: props.by })} text={props.conflict.theirs} />
      </div>
      <For each={offered()}>
        {([choice, label]) => (
          <label class="merge-choice">
            <input
              type="radio"
              name={name}
              checked={props.chosen === choice}
              onChange={() => props.choose(choice)}
            />
            {label}
          </label>
        )}
      </For>
    </fieldset>
  );
}

function Side(props: { name: string; text: string | undefined }): JSX.Element {
  return (
    <div>
      <b class="hint">
        <bdi>{props.name}</bdi>
      </b>
      <Show when={props.text !== undefined} fallback={<p class="hint">{texts.merge.deleted}</p>}>
        <pre class="code-block" tabindex="0" role="region" aria-label={props.name}>
          {props.text}
        </pre>
      </Show>
    </div>
  );
}
