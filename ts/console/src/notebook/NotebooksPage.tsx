/**
 * Lists the notebooks saved on the server: the user's own notebooks, and notebooks shared by
 * others.
 */
import '../styles/saved.css';
import { createEffect, createMemo, createSignal, on, Show, type JSX } from 'solid-js';
import { SearchField } from '../dialogs/SearchField.js';
import * as notebooks from '../api/notebooks.js';
import { confirmed } from '../page/questions.js';
import { withNotebooks } from './load.js';
import { showFailure, showToast } from '../page/notices.js';
import { LivePage } from '../ui/LivePage.js';
import { openMenuBelow, type MenuItem } from '../ui/Menu.js';
import { openPage, route } from '../page/pages.js';
import { signIn } from '../signin/state.js';
import { type Loading, settle } from '../state/loading.js';
import { openSaved, openLink } from '../saved/open.js';
import { ShareDialog } from '../saved/ShareDialog.js';
import { dateTimeText } from '../saved/VersionsDialog.js';
import type { Workspace } from '../state/workspace.js';
import { IconButton } from '../ui/IconButton.js';
import { Listing } from '../ui/Listing.js';
import { fill } from '../fill.js';
import { countText } from '../model/format.js';
import { texts } from '../texts.js';

const REFRESH_MS = 5000;

export default function NotebooksPage(props: { workspace: Workspace }): JSX.Element {
  const [all, setAll] = createSignal<Loading<readonly notebooks.Listed[]>>({ state: 'loading' });
  const [shared, setShared] = createSignal<notebooks.Listed>();
  const refresh = async (): Promise<void> => {
    setAll(await settle(notebooks.list));
  };
  // Opens a shared link, if necessary after the user signs in.
  createEffect(
    on(
      () => (signIn().state === 'out' ? '' : route().subject),
      (link) => {
        if (link !== '') {
          openLink(props.workspace, link).catch((cause: unknown) => {
            if (signIn().state !== 'out') {
              openPage('notebooks');
              showFailure(cause);
            }
          });
        }
      },
    ),
  );
  return (
    <>
      <LivePage
        page="notebooks"
        title={texts.common.notebooks}
        hint={(rows) => countText(rows.length, texts.counts.notebooks)}
        everyMs={REFRESH_MS}
        poll={() => void refresh()}
        loaded={all()}
        key="id"
        unread={texts.notebooksPage.notLoaded}
        empty={<NoNotebooks workspace={props.workspace} />}
      >
        {(rows) => (
          <Shelf
            workspace={props.workspace}
            rows={rows}
            share={setShared}
            changed={() => void refresh()}
          />
        )}
      </LivePage>
      <Show when={shared()} keyed>
        {(one) => (
          <ShareDialog
            id={one.id}
            title={one.title}
            onClose={() => setShared(undefined)}
            onShared={() => void refresh()}
          />
        )}
      </Show>
    </>
  );
}

function NoNotebooks(props: { workspace: Workspace }): JSX.Element {
  return (
    <>
      <strong>{texts.notebooksPage.noNotebooks}</strong>
      <p>{texts.notebooksPage.noNotebooksHint}</p>
      <button
        class="button primary"
        onClick={() => withNotebooks((create) => create.create(props.workspace))}
      >
        {texts.common.newNotebook}
      </button>
    </>
  );
}

interface ShelfProps {
  readonly workspace: Workspace;
  readonly rows: readonly notebooks.Listed[];
  readonly share: (notebook: notebooks.Listed) => void;
  readonly changed: () => void;
}

function Shelf(props: ShelfProps): JSX.Element {
  const [search, setSearch] = createSignal('');
  const shown = createMemo(() => {
    const needle = search().toLowerCase();
    return props.rows.filter(({ title, owner }) =>
      `${title}\n${owner}`.toLowerCase().includes(needle),
    );
  });
  return (
    <>
      <div class="page-filters">
        <SearchField placeholder={texts.notebooksPage.filter} search={setSearch} />
      </div>
      <div
        class="page-table"
        role="region"
        aria-label={texts.notebooksPage.listOfNotebooks}
        tabindex="0"
      >
        <Listing
          heads={[
            [texts.common.notebook],
            [texts.common.owner],
            [texts.notebooksPage.shared],
            [texts.notebooksPage.changed],
            [texts.notebooksPage.changedBy],
            [texts.notebooksPage.version, 'num'],
            [texts.common.actions, 'actions'],
          ]}
          rows={shown()}
        >
          {(row) => <Row {...props} row={row} />}
        </Listing>
      </div>
    </>
  );
}

function Row(props: ShelfProps & { row: notebooks.Listed }): JSX.Element {
  const open = (): void => {
    openSaved(props.workspace, props.row.id).catch(showFailure);
  };
  return (
    <tr>
      <th scope="row">
        <button class="row-link" title={props.row.title} onClick={open}>
          <bdi>{props.row.title}</bdi>
        </button>
      </th>
      <td>
        <bdi>{props.row.mine ? texts.notebooksPage.you : props.row.owner}</bdi>
      </td>
      <td class="shared-with" title={sharedText(props.row)}>
        <bdi>{sharedText(props.row)}</bdi>
      </td>
      <td class="data">{dateTimeText(props.row.changed)}</td>
      <td>
        <bdi>{props.row.changedBy}</bdi>
      </td>
      <td class="data num">{props.row.version}</td>
      <td class="actions">
        <IconButton
          icon="more"
          label={fill(texts.common.moreActionsFor, { name: props.row.title })}
          aria-haspopup="menu"
          onClick={(event) =>
            openMenuBelow(texts.common.notebook, event.currentTarget, itemsOf(props, open))
          }
        />
      </td>
    </tr>
  );
}

function sharedText({ access, shares = [], link }: notebooks.Listed): string {
  if (access !== 'own') {
    return access === 'write' ? texts.notebooksPage.youCanWrite : texts.notebooksPage.youCanRead;
  }
  const names = shares.map(({ name }) => name);
  const all = typeof link === 'string' ? [...names, texts.notebooksPage.byLink] : names;
  return all.length === 0 ? texts.notebooksPage.notShared : all.join(', ');
}

function itemsOf(props: ShelfProps & { row: notebooks.Listed }, open: () => void): MenuItem[] {
  const { row } = props;
  const remove = async (): Promise<void> => {
    const others = (row.shares?.length ?? 0) > 0 ? texts.notebooksPage.usersLoseAccess : '';
    const isSure = await confirmed({
      title: fill(texts.notebooksPage.deleteQuestion, { title: row.title }),
      text: fill(texts.notebooksPage.deleteConsequences, {
        versions: countText(row.version, texts.notebooksPage.versionsDeleted),
        users: others,
      }),
      cancel: texts.common.cancel,
      destroy: fill(texts.notebooksPage.delete, { title: row.title }),
    });
    if (isSure) {
      await notebooks.remove(row.id);
      showToast({ text: fill(texts.notebooksPage.wasDeleted, { title: row.title }) });
      props.changed();
    }
  };
  return [
    { label: texts.common.open, run: open },
    ...(row.access === 'own'
      ? [
          { label: texts.common.share, run: () => props.share(row) },
          { label: 'Delete', divider: true, run: () => void remove().catch(showFailure) },
        ]
      : []),
  ];
}
