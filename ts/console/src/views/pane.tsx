/** Components that materialized and live views share: actions and facts. */
import { createEffect, createMemo, createSignal, For, on, Show, type JSX } from 'solid-js';
import { confirmDrop } from '../dialogs/confirm-drop.js';
import { Icon, type IconName } from '../ui/icons.js';
import { addressOf } from '../page/pages.js';
import type { Job } from '../state/jobs.js';
import { mayDo, readOwnRights, type OwnGrant } from '../state/own-rights.js';
import type { Session } from '../state/session.js';
import { countText, timestampText } from '../model/format.js';
import type { Attempt } from './StatementDialog.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface PaneProps<View> {
  readonly session: Session;
  readonly name: string;
  readonly view: View;
  /** The statement that creates the view; `undefined` until it is loaded. */
  readonly statement: string | undefined;
  readonly job: Job | undefined;
  /** Runs a statement and shows the server's error if the statement fails. */
  readonly run: (statement: string, done: string) => Promise<void>;
  readonly attempt: Attempt;
  readonly failure: string;
}

export interface ViewAction {
  readonly label: string;
  readonly icon?: IconName;
  /** Permission on the view that the action requires. */
  readonly permission: string;
  /** Verb for the action, used in sentences. */
  readonly verb: string;
  readonly run: () => void;
}

/**
 * Shows the buttons of the actions. Below the buttons are the reasons why some actions are not
 * permitted, and the server's error.
 */
export function Actions(props: {
  session: Session;
  name: string;
  actions: readonly ViewAction[];
  failure: string;
}): JSX.Element {
  const refusal = refusalsOf(props);
  const reasons = createMemo(() => [
    ...new Set(props.actions.flatMap((action) => refusal(action) ?? [])),
  ]);
  return (
    <>
      <div class="view-actions" role="group" aria-label={texts.views.viewActions}>
        <For each={props.actions}>
          {(action) => (
            <button
              class="button small"
              disabled={refusal(action) !== undefined}
              title={refusal(action)}
              onClick={() => action.run()}
            >
              <Show when={action.icon}>{(icon) => <Icon name={icon()} />}</Show>
              {action.label}
            </button>
          )}
        </For>
        <For each={reasons()}>{(reason) => <p class="hint">{reason}</p>}</For>
      </div>
      <Show when={props.failure}>
        {(failure) => (
          <p class="error view-failure" role="alert">
            <Icon name="alert" />
            <bdi>{failure()}</bdi>
          </p>
        )}
      </Show>
    </>
  );
}

/**
 * Returns a function that explains why an action is not permitted, or returns `undefined` if the
 * user may try it.
 */
function refusalsOf(props: {
  session: Session;
  name: string;
}): (action: ViewAction) => string | undefined {
  const [grants, setGrants] = createSignal<readonly OwnGrant[]>();
  createEffect(
    on(
      () => [props.name, props.session.server.hasUsers] as const,
      ([, hasUsers]) => {
        if (hasUsers) {
          // If the permissions cannot be read, all actions are enabled, and the server rejects
          // actions that are not permitted.
          void readOwnRights().then(setGrants, () => undefined);
        }
      },
    ),
  );
  return ({ permission, verb }) => {
    if (props.session.server.isReadOnly) {
      return texts.views.readOnly;
    }
    const known = grants();
    return known === undefined || mayDo(known, permission, props.name)
      ? undefined
      : fill(texts.views.noPermission, { action: verb, name: props.name, permission });
  };
}

export function dropAction(props: PaneProps<unknown>, permission: string): ViewAction {
  const drop = async (): Promise<void> => {
    const { session, name, run } = props;
    const entry = session.schema.entryOf(name);
    const statement = entry && (await confirmDrop(entry));
    if (statement !== undefined) {
      await run(statement, fill(texts.common.wasDropped, { name }));
    }
  };
  return {
    label: texts.views.dropAction,
    permission,
    verb: texts.views.toDrop,
    run: () => void drop(),
  };
}

export interface Fact {
  readonly name: string;
  readonly text: string;
  /** Set if the fact spans several columns (`broad`) or all columns (`wide`). */
  readonly width?: 'broad' | 'wide';
  readonly isBad?: boolean;
}

export function Facts(props: { base: string | undefined; facts: readonly Fact[] }): JSX.Element {
  return (
    <dl class="facts view-facts">
      <div>
        <dt>{texts.views.baseTable}</dt>
        <dd class="data">
          <Show when={props.base} fallback={texts.views.baseNotVisible}>
            {(base) => (
              <a href={addressOf('tables', base())}>
                <bdi>{base()}</bdi>
              </a>
            )}
          </Show>
        </dd>
      </div>
      <For each={props.facts}>
        {({ name, text, width, isBad }) => (
          <div class={width}>
            <dt>{name}</dt>
            <dd classList={{ error: isBad === true }} title={text}>
              <bdi>{text}</bdi>
            </dd>
          </div>
        )}
      </For>
    </dl>
  );
}

/** Returns the state of a view's refresh job, without the duration of the last refresh. */
export function jobFacts(job: Job | undefined, reason: string | undefined): Fact[] {
  if (!job) {
    return [];
  }
  const { state, failures, nextRun, lastError } = job;
  const next = state === 'failing' ? texts.views.nextAttemptUtc : texts.common.nextRunUtc;
  return [
    {
      name: texts.common.job,
      text: failures > 0 ? `${state}, ${countText(failures, texts.counts.times)}` : state,
    },
    ...(nextRun === undefined ? [] : [{ name: next, text: timestampText(nextRun) }]),
    ...(lastError === undefined || lastError === reason
      ? []
      : [{ name: texts.common.lastError, text: lastError, width: 'wide', isBad: true } as const]),
  ];
}
