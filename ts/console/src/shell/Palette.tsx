/** Command palette: finds commands by part of their name and runs the selected command. */
import { createMemo, createSignal, For, on, onMount, Show, type JSX } from 'solid-js';
import type { Session } from '../state/session.js';
import { commandsOf, type Command } from './commands.js';
import { Icon } from '../ui/icons.js';
import { fillNodes } from '../fill.js';
import { texts } from '../texts.js';

const SHOWN_PER_GROUP = 8;

const GROUP_NAMES: Readonly<Record<Command['group'], string>> = {
  tables: texts.common.tables,
  commands: texts.palette.commands,
  follow: texts.common.follow,
  log: texts.common.queryLog,
};

interface PaletteProps {
  readonly session: Session;
  readonly help: () => void;
  readonly onClose: () => void;
}

export default function Palette(props: PaletteProps): JSX.Element {
  let dialog!: HTMLDialogElement;
  // The list of commands is computed once, and again if the user's permissions become known.
  const all = createMemo(
    on(
      () => props.session.server.listsUsers(),
      () => commandsOf(props.session, () => props.help()),
    ),
  );
  const [search, setSearch] = createSignal('');
  const [chosen, setChosen] = createSignal(0);
  const found = createMemo(() => matching(all(), search()));
  onMount(() => dialog.showModal());

  const run = (command: Command | undefined): void => {
    if (command) {
      dialog.close();
      command.run();
    }
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step !== undefined) {
      const last = found().length - 1;
      setChosen(Math.max(0, Math.min(last, chosen() + step)));
      document.getElementById(`command-${chosen()}`)?.scrollIntoView({ block: 'nearest' });
    } else if (event.key === 'Enter') {
      run(found()[chosen()]);
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      class="dialog palette"
      aria-label={texts.palette.label}
      onClose={() => props.onClose()}
      onClick={(event) => event.target === dialog && dialog.close()}
    >
      <label class="palette-input">
        <Icon name="search" />
        <input
          autofocus
          role="combobox"
          aria-label={texts.palette.input}
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={found().length > 0 ? `command-${chosen()}` : undefined}
          onInput={(event) => {
            setSearch(event.currentTarget.value);
            setChosen(0);
          }}
          onKeyDown={onKeyDown}
        />
      </label>
      <Options found={found()} chosen={chosen()} search={search()} choose={setChosen} run={run} />
      <Show when={found().length === 0}>
        <p class="hint">{texts.palette.noMatches}</p>
      </Show>
      <Foot />
    </dialog>
  );
}

interface OptionsProps {
  readonly found: readonly Command[];
  readonly chosen: number;
  readonly search: string;
  readonly choose: (index: number) => void;
  readonly run: (command: Command) => void;
}

function Options(props: OptionsProps): JSX.Element {
  return (
    <div id="palette-list" class="palette-list" role="listbox" aria-label={texts.palette.matches}>
      <For each={props.found}>
        {(command, index) => (
          <>
            <Show when={props.found[index() - 1]?.group !== command.group}>
              <div class="palette-group" role="presentation">
                {GROUP_NAMES[command.group]}
              </div>
            </Show>
            <div
              id={`command-${index()}`}
              class="palette-option"
              role="option"
              aria-selected={index() === props.chosen ? 'true' : 'false'}
              onPointerMove={() => props.choose(index())}
              onClick={() => props.run(command)}
            >
              <Icon name={command.icon} class="faint-icon" />
              <Marked text={command.name} search={props.search} />
              <Show when={command.hint}>
                <span class="hint">{command.hint}</span>
              </Show>
              <Show when={command.keys}>
                <kbd>{command.keys}</kbd>
              </Show>
            </div>
          </>
        )}
      </For>
    </div>
  );
}

function Foot(): JSX.Element {
  return (
    <p class="palette-foot">
      <span>{fillNodes(texts.palette.selectKeys, { up: <kbd>↑</kbd>, down: <kbd>↓</kbd> })}</span>
      <span>{fillNodes(texts.palette.runKey, { key: <kbd>⏎</kbd> })}</span>
      <span>{fillNodes(texts.palette.closeKey, { key: <kbd>Esc</kbd> })}</span>
    </p>
  );
}

/**
 * Returns the first few commands in each group that contain every typed word. Prefix matches come
 * first.
 */
function matching(all: readonly Command[], search: string): Command[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = all
    .map((command) => ({ command, name: command.name.toLowerCase() }))
    .filter(({ name }) => words.every((word) => name.includes(word)));
  const groups = new Map<string, Command[]>();
  const first = words[0] ?? '';
  for (const begins of [true, false]) {
    for (const { command } of hits.filter(({ name }) => name.startsWith(first) === begins)) {
      const group = groups.get(command.group) ?? [];
      groups.set(command.group, group);
      if (group.length < SHOWN_PER_GROUP || (command.group === 'commands' && first !== '')) {
        group.push(command);
      }
    }
  }
  const order: readonly Command['group'][] =
    words.length === 0 ? ['commands', 'tables', 'log'] : ['tables', 'commands', 'follow', 'log'];
  return order.flatMap((group) => groups.get(group) ?? []);
}

/** Highlights the first typed word in a text. */
function Marked(props: { text: string; search: string }): JSX.Element {
  const at = createMemo(() => {
    const word = props.search.trim().toLowerCase().split(/\s+/)[0] ?? '';
    const start = word === '' ? -1 : props.text.toLowerCase().indexOf(word);
    return { start, end: start + word.length };
  });
  return (
    <bdi>
      <Show when={at().start >= 0} fallback={props.text}>
        {props.text.slice(0, at().start)}
        <mark>{props.text.slice(at().start, at().end)}</mark>
        {props.text.slice(at().end)}
      </Show>
    </bdi>
  );
}
