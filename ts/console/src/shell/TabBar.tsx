/** Tab bar: selects, renames, moves, closes and reopens tabs, and exports all tabs to a file. */
import { createSignal, For, Show, type JSX } from 'solid-js';
import type { Session } from '../state/session.js';
import type { Tab } from '../state/tab.js';
import { Icon, type IconName } from '../ui/icons.js';
import { openMenuBelow } from '../ui/Menu.js';
import { tabMenu } from './tab-menu.js';
import { editor } from '../state/editor.js';
import { IconButton } from '../ui/IconButton.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export function TabBar(props: { session: Session; palette: () => void }): JSX.Element {
  const { session } = props;
  const { workspace } = session;
  const [renamed, setRenamed] = createSignal<string>();
  const focusActive = (): void => document.getElementById(`tab-${workspace.active()}`)?.focus();

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target instanceof HTMLInputElement) {
      return;
    }
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const index = workspace.tabs.findIndex(({ id }) => id === workspace.active());
    if (step !== undefined && event.altKey) {
      workspace.move(workspace.active(), index + step);
      focusActive();
    } else if (step !== undefined) {
      workspace.step(step);
      focusActive();
    } else if (event.key === 'Delete') {
      session.tabs.close(workspace.active());
      focusActive();
    } else if (event.key === 'F2') {
      setRenamed(workspace.active());
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="tabs">
      <div class="tablist" role="tablist" aria-label={texts.tabs.queryTabs} onKeyDown={onKeyDown}>
        <For each={workspace.tabs}>
          {(tab, index) => (
            <TabItem
              session={session}
              tab={tab}
              index={index()}
              renamed={renamed() === tab.id}
              setRenamed={setRenamed}
            />
          )}
        </For>
      </div>
      <IconButton
        icon="plus"
        label={texts.common.newTab}
        title={texts.tabs.newTabHint}
        onClick={() => {
          workspace.add();
          editor()?.focus();
        }}
      />
      <span class="spring" />
      <Tools
        session={session}
        palette={() => props.palette()}
        rename={() => setRenamed(workspace.active())}
      />
    </div>
  );
}

function Tools(props: { session: Session; palette: () => void; rename: () => void }): JSX.Element {
  return (
    <>
      <button class="palette-hint" title={texts.tabs.paletteHint} onClick={() => props.palette()}>
        <Icon name="search" />
        <span>{texts.tabs.palette}</span>
        <kbd>Ctrl+K</kbd>
      </button>
      <IconButton
        icon="menu"
        label={texts.tabs.tabs}
        aria-haspopup="menu"
        title={texts.tabs.menuHint}
        onClick={(event) =>
          openMenuBelow(
            texts.tabs.tabs,
            event.currentTarget,
            tabMenu(props.session, () => props.rename()),
          )
        }
      />
    </>
  );
}

const TAB_TYPE = 'application/x-tidemark-tab';

interface TabItemProps {
  readonly session: Session;
  readonly tab: Tab;
  readonly index: number;
  readonly renamed: boolean;
  readonly setRenamed: (id: string | undefined) => void;
}

function TabItem(props: TabItemProps): JSX.Element {
  const { workspace } = props.session;
  const rename = (title: string): void => {
    props.setRenamed(undefined);
    workspace.rename(props.tab.id, title);
    document.getElementById(`tab-${props.tab.id}`)?.focus();
  };
  return (
    <div
      class="tab-item"
      role="presentation"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        const dragged = event.dataTransfer?.getData(TAB_TYPE);
        if (dragged) {
          event.preventDefault();
          workspace.move(dragged, props.index);
        }
      }}
    >
      <Show
        when={props.renamed}
        fallback={<TabButton session={props.session} tab={props.tab} rename={props.setRenamed} />}
      >
        <TitleInput title={props.tab.title} onDone={rename} />
      </Show>
      <span
        class="tab-close"
        aria-hidden="true"
        title={texts.tabs.closeHint}
        onClick={() => props.session.tabs.close(props.tab.id)}
      >
        <Icon name="close" />
      </span>
    </div>
  );
}

function TabButton(props: {
  session: Session;
  tab: Tab;
  rename: (id: string) => void;
}): JSX.Element {
  const { workspace } = props.session;
  const isActive = (): boolean => workspace.active() === props.tab.id;
  return (
    <button
      id={`tab-${props.tab.id}`}
      class="tab"
      role="tab"
      aria-selected={isActive() ? 'true' : 'false'}
      tabindex={isActive() ? 0 : -1}
      title={fill(texts.tabs.renameHint, { title: props.tab.title })}
      draggable={true}
      onDragStart={(event) => event.dataTransfer?.setData(TAB_TYPE, props.tab.id)}
      onClick={() => workspace.select(props.tab.id)}
      onDblClick={() => props.rename(props.tab.id)}
      onAuxClick={(event) => event.button === 1 && props.session.tabs.close(props.tab.id)}
    >
      <Show
        when={workspace.runner(props.tab.id).run()?.state === 'running'}
        fallback={<Icon name={tabIcon(props.tab)} class="faint-icon" />}
      >
        <Icon name="running" class="spin accent" />
      </Show>
      <bdi>{props.tab.title}</bdi>
    </button>
  );
}

function tabIcon({ follow, notebook }: Tab): IconName {
  return follow ? 'follow' : notebook ? 'notebook' : 'sql';
}

function TitleInput(props: { title: string; onDone: (title: string) => void }): JSX.Element {
  let done = false;
  const finish = (title: string): void => {
    if (!done) {
      done = true;
      props.onDone(title);
    }
  };
  return (
    <input
      ref={(input) => queueMicrotask(() => input.select())}
      class="tab-title"
      aria-label={texts.tabs.tabName}
      value={props.title}
      onBlur={(event) => finish(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') {
          finish(event.currentTarget.value);
        } else if (event.key === 'Escape') {
          finish(props.title);
        }
      }}
    />
  );
}
