/**
 * The access page lists users and groups, and shows the permissions and pending changes of the
 * selected one.
 */
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  Match,
  on,
  onMount,
  Show,
  Switch,
  type JSX,
} from 'solid-js';
import { SearchField } from '../dialogs/SearchField.js';
import { showFailure } from '../page/notices.js';
import { Icon } from '../ui/icons.js';
import { openPage, route } from '../page/pages.js';
import type { Schema } from '../state/schema.js';
import { failureOf, readyOf } from '../state/loading.js';
import { PendingPane } from './PendingPane.js';
import { RightsPane } from './RightsPane.js';
import { AccessState, type Rights } from './state.js';
import { creationOf, PRINCIPAL_LABELS, type Principal, type PrincipalKind } from './model.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const KIND_NAMES: Readonly<Record<PrincipalKind, string>> = {
  user: texts.common.users,
  group: texts.access.groups,
  'service account': texts.access.serviceAccounts,
};
const KINDS = Object.entries(KIND_NAMES) as [PrincipalKind, string][];

export default function AccessPage(props: { schema: Schema }): JSX.Element {
  const state = new AccessState();
  const [kind, setKind] = createSignal<PrincipalKind>('user');
  const all = (): readonly Principal[] => readyOf(state.principals()) ?? [];
  const show = (principal: Principal): void => {
    setKind(principal.kind);
    openPage('access', principal.name);
    void state.show(principal);
  };
  const begin = async (): Promise<void> => {
    await state.load();
    const named = all().find(({ name }) => name === route().subject);
    if (named) {
      show(named);
    }
  };
  onMount(() => void begin());
  // Retry a refused load after the user has signed in.
  createEffect(
    on(props.schema.tables, ({ state: isThere }) => {
      if (isThere === 'ready' && state.principals().state === 'failed') {
        void begin();
      }
    }),
  );
  const failure = (): string => failureOf(state.principals()) || failureOf(state.rights());
  const rights = (): Rights | undefined => readyOf(state.rights());

  return (
    <section class="page" aria-labelledby="access-title" data-region="access">
      <header class="page-head">
        <h1 id="access-title">{texts.common.usersAndPermissions}</h1>
        <p class="hint">{texts.access.hint}</p>
      </header>
      <div class="access" classList={{ chosen: rights() !== undefined }}>
        <Show when={state.principals().state === 'ready'} fallback={<div />}>
          <PrincipalList
            all={all()}
            kind={kind()}
            setKind={setKind}
            chosen={rights()?.principal.name}
            state={state}
            onPick={show}
          />
        </Show>
        <Switch
          fallback={
            <Note title={texts.access.nothingSelected}>{texts.access.nothingSelectedHint}</Note>
          }
        >
          <Match when={failure()}>
            <Note title={texts.access.notLoaded}>
              <bdi>{failure()}</bdi>
            </Note>
          </Match>
          <Match when={rights()}>
            {(shown) => (
              <>
                <RightsPane schema={props.schema} state={state} rights={shown()} all={all()} />
                <PendingPane state={state} />
              </>
            )}
          </Match>
        </Switch>
      </div>
    </section>
  );
}

function Note(props: { title: string; children: JSX.Element }): JSX.Element {
  return (
    <div class="empty">
      <strong>{props.title}</strong>
      <p>{props.children}</p>
    </div>
  );
}

function PrincipalList(props: {
  all: readonly Principal[];
  kind: PrincipalKind;
  setKind: (kind: PrincipalKind) => void;
  chosen: string | undefined;
  state: AccessState;
  onPick: (principal: Principal) => void;
}): JSX.Element {
  const [search, setSearch] = createSignal('');
  const shown = createMemo(() =>
    props.all.filter(
      ({ kind, name }) => kind === props.kind && name.toLowerCase().includes(search()),
    ),
  );
  return (
    <div class="access-list">
      <span class="segmented" role="group" aria-label={texts.common.kind}>
        <For each={KINDS}>
          {([value, name]) => (
            <button aria-pressed={props.kind === value} onClick={() => props.setKind(value)}>
              {name} {props.all.filter((one) => one.kind === value).length}
            </button>
          )}
        </For>
      </span>
      <SearchField
        placeholder={texts.common.filterByName}
        label={texts.access.filterLabel}
        search={(text) => setSearch(text.trim().toLowerCase())}
      />
      <ul aria-label={texts.access.usersAndGroups}>
        <For each={shown()}>
          {(principal) => (
            <li>
              <button
                class="access-entry"
                aria-current={props.chosen === principal.name ? 'true' : undefined}
                onClick={() => props.onPick(principal)}
              >
                <Icon name={principal.kind === 'group' ? 'group' : 'access'} />
                <bdi>{principal.name}</bdi>
              </button>
            </li>
          )}
        </For>
      </ul>
      <NewPrincipal kind={props.kind} state={props.state} onCreated={props.onPick} />
    </div>
  );
}

function NewPrincipal(props: {
  kind: PrincipalKind;
  state: AccessState;
  onCreated: (principal: Principal) => void;
}): JSX.Element {
  const [name, setName] = createSignal('');
  const [password, setPassword] = createSignal('');
  const create = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const { kind } = props;
    const created = { kind, name: name().trim() };
    try {
      await props.state.run(creationOf(created, password()), created);
      setName('');
      setPassword('');
      props.onCreated(created);
    } catch (cause) {
      showFailure(cause);
    }
  };
  return (
    <form class="access-new" onSubmit={(event) => void create(event)}>
      <label class="stack">
        <span>{fill(texts.access.newPrincipal, { kind: PRINCIPAL_LABELS[props.kind] })}</span>
        <input
          class="input"
          autocomplete="off"
          value={name()}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <Show when={props.kind !== 'group'}>
        <label class="stack">
          <span>{texts.access.optionalPassword}</span>
          <input
            class="input"
            type="password"
            autocomplete="new-password"
            value={password()}
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
        </label>
      </Show>
      <button class="button" disabled={name().trim() === ''}>
        <Icon name="plus" />
        {fill(texts.access.createPrincipal, { kind: PRINCIPAL_LABELS[props.kind] })}
      </button>
    </form>
  );
}
