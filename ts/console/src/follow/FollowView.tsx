/**
 * A tab that follows a table or a query. It shows the last rows as a grid or a chart, with live
 * updates.
 */
import '../styles/follow.css';
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  lazy,
  on,
  onCleanup,
  onMount,
  Show,
  Suspense,
  type JSX,
} from 'solid-js';
import { Grid } from '../grid/Grid.js';
import { gridStateOf } from '../grid/state.js';
import { grouped, type Zone, rowsText } from '../model/format.js';
import { orderOf } from '../model/order.js';
import { asOf, type Result } from '../model/result.js';
import { announce } from '../page/notices.js';
import { Icon, type IconName } from '../ui/icons.js';
import { route } from '../page/pages.js';
import { ZoneSwitch } from '../ui/ZoneSwitch.js';
import type { Session } from '../state/session.js';
import type { FollowSpec, Tab } from '../state/tab.js';
import { Follower, type Unseen } from './follower.js';
import { lastRows } from './source.js';
import { zone } from '../page/zone.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

const Chart = lazy(() => import('../chart/Chart.js'));

const ROW_CHOICES = [100, 500, 1000, 5000] as const;

interface FollowProps {
  readonly session: Session;
  readonly tab: Tab;
  readonly follow: FollowSpec;
}

export default function FollowView(props: FollowProps): JSX.Element {
  const follower = createMemo(() =>
    followerOf(props.session.workspace.runner(props.tab.id), props.follow),
  );
  const [atEnd, setAtEnd] = createSignal(true);
  const state = createMemo(() => gridStateOf(follower()));
  const isArranged = (): boolean => state().sort() !== undefined || state().filter().trim() !== '';
  const isGrid = (): boolean => props.follow.view === 'grid';
  createEffect(() => state().adopt(follower().result()?.columns ?? []));
  // Hold new rows while the user looks at earlier rows or has sorted or filtered the grid.
  createEffect(
    on(
      () => [follower(), isGrid() && (!atEnd() || isArranged())] as const,
      ([one, isOnHold]) => one.hold(isOnHold),
    ),
  );
  whileVisible(follower);
  const toEnd = (): void => {
    state().sortBy(undefined);
    state().filter.set('');
    setAtEnd(true);
    follower().hold(false);
  };
  return (
    <section
      class="follow"
      aria-label={fill(texts.follow.following, { table: props.follow.table })}
    >
      <FollowBar {...props} follower={follower()} />
      <Trouble follower={follower()} zone={zone()} />
      <div class="follow-body">
        <Show when={follower().result()} fallback={<Nothing follower={follower()} />}>
          {(result) => (
            <Show
              when={isGrid()}
              fallback={
                <Suspense>
                  <Chart
                    result={result()}
                    revision={follower().revision()}
                    zone={zone()}
                    onPick={(row) => {
                      props.session.workspace.setFollow(props.tab.id, { view: 'grid' });
                      state().seek(row);
                    }}
                  />
                </Suspense>
              }
            >
              <FollowedGrid
                session={props.session}
                follower={follower()}
                result={result()}
                atEnd={atEnd()}
                setAtEnd={setAtEnd}
              />
            </Show>
          )}
        </Show>
        <Show when={isGrid() && follower().unseen().count > 0}>
          <button class="button primary follow-new" onClick={toEnd}>
            <Icon name="down" />
            {unseenText(follower().unseen())}
          </button>
        </Show>
      </div>
    </section>
  );
}

const followers = new WeakMap<object, Follower>();

/**
 * Returns the follower of a tab. The follower is kept while other tabs are active, and replaced if
 * its specification changes.
 */
function followerOf(runner: object, { table, query, rows }: FollowSpec): Follower {
  const known = followers.get(runner);
  const before = known?.followed;
  if (known && before?.table === table && before.query === query && before.rows === rows) {
    return known;
  }
  known?.stop();
  const follower = new Follower({ table, query, rows });
  followers.set(runner, follower);
  return follower;
}

/** Runs the follower only while its rows are visible. */
function whileVisible(follower: () => Follower): void {
  const [isHidden, setHidden] = createSignal(document.hidden);
  const listen = (): void => {
    setHidden(document.hidden);
  };
  onMount(() => document.addEventListener('visibilitychange', listen));
  onCleanup(() => document.removeEventListener('visibilitychange', listen));
  createEffect(() => {
    const one = follower();
    if (!isHidden() && route().page === 'sql') {
      one.start();
    } else {
      one.stop();
    }
    onCleanup(() => one.stop());
  });
}

function FollowedGrid(props: {
  session: Session;
  follower: Follower;
  result: Result;
  atEnd: boolean;
  setAtEnd: (isAtEnd: boolean) => void;
}): JSX.Element {
  const state = createMemo(() => gridStateOf(props.follower));
  const order = createMemo(() => {
    const { columns, rows } = asOf(props.result, props.follower.revision());
    return orderOf(columns, rows, state().sort(), state().filter());
  });
  const isEmpty = createMemo(() => asOf(props.result, props.follower.revision()).rows.length === 0);
  return (
    <>
      <Grid
        result={props.result}
        revision={props.follower.revision()}
        state={state()}
        order={order()}
        zone={zone()}
        onLeave={() => document.getElementById('follow-pause')?.focus()}
        tail={{ isAtEnd: () => props.atEnd, setAtEnd: (isAtEnd) => props.setAtEnd(isAtEnd) }}
      />
      <Show when={isEmpty()}>
        <div class="empty over-grid">
          <strong>{texts.follow.noRowsYet}</strong>
          <p>{texts.follow.noRowsYetHint}</p>
        </div>
      </Show>
    </>
  );
}

function FollowBar(props: FollowProps & { follower: Follower }): JSX.Element {
  const { workspace } = props.session;
  const change = (spec: Partial<FollowSpec>): void => workspace.setFollow(props.tab.id, spec);
  const isPaused = (): boolean => props.follower.isPaused();
  return (
    <div class="toolbar" role="toolbar" aria-label={texts.follow.follow} data-region="follow">
      <button
        id="follow-pause"
        class="button"
        onClick={() => (isPaused() ? props.follower.resume() : props.follower.pause())}
      >
        <Icon name={isPaused() ? 'play' : 'pause'} />
        {isPaused() ? texts.common.resume : texts.follow.pause}
      </button>
      <FollowState follower={props.follower} zone={zone()} />
      <label class="follow-rows">
        <span>{texts.follow.last}</span>
        <select
          class="select"
          aria-label={texts.follow.numberOfRows}
          onChange={(event) => change({ rows: Number(event.currentTarget.value) })}
        >
          <For each={ROW_CHOICES}>
            {(count) => (
              <option value={count} selected={props.follow.rows === count}>
                {fill(texts.follow.rowCount, { count: grouped(String(count)) })}
              </option>
            )}
          </For>
        </select>
      </label>
      <span class="segmented" role="group" aria-label={texts.follow.view}>
        <For each={['grid', 'chart'] as const}>
          {(view) => (
            <button
              aria-pressed={props.follow.view === view ? 'true' : 'false'}
              onClick={() => change({ view })}
            >
              {view === 'grid' ? texts.common.grid : texts.common.chart}
            </button>
          )}
        </For>
      </span>
      <span class="spring" />
      <ZoneSwitch />
      <button
        class="button ghost wide-only"
        title={texts.follow.openQueryHint}
        onClick={() => props.session.tabs.edit(`${lastRows(props.follower.followed)};\n`)}
      >
        <Icon name="sql" />
        <span class="label">{texts.follow.openQuery}</span>
      </button>
    </div>
  );
}

function FollowState(props: { follower: Follower; zone: Zone }): JSX.Element {
  const appearance = (): readonly [IconName, string, string] => {
    const feed = props.follower.feed();
    const at = clockText(props.follower.asOf(), props.zone);
    if (props.follower.isPaused()) {
      return ['pause', '', fill(texts.follow.paused, { at })];
    }
    if (props.follower.isOnHold() && feed.state === 'live') {
      return ['pause', '', fill(texts.follow.onHold, { at })];
    }
    switch (feed.state) {
      case 'starting':
        return ['running', 'spin', texts.common.loading];
      case 'live':
        return props.follower.polled() === undefined
          ? ['check', 'ok', texts.common.live]
          : ['clock', 'muted', fill(texts.follow.polled, { at })];
      case 'lost':
      case 'refused':
        return ['alert', 'warn', fill(texts.follow.asOf, { at })];
    }
  };
  return (
    <span class="follow-state">
      <Icon name={appearance()[0]} class={appearance()[1]} />
      {appearance()[2]}
    </span>
  );
}

/** Explains why no new rows arrive. The existing rows stay visible. */
function Trouble(props: { follower: Follower; zone: Zone }): JSX.Element {
  const trouble = createMemo(() => {
    const feed = props.follower.feed();
    return 'message' in feed && !props.follower.isPaused() ? feed : undefined;
  });
  createEffect(
    on(
      () => trouble()?.message,
      (message, before) => {
        if (message !== undefined) {
          announce(message);
        } else if (before !== undefined) {
          announce(texts.follow.upToDate);
        }
      },
    ),
  );
  return (
    <Show when={trouble()} fallback={<Polled follower={props.follower} />}>
      {(feed) => (
        <p class="follow-trouble" data-state={feed().state}>
          <Icon name="alert" />
          <span>
            {fillNodes(texts.follow.outdated, {
              message: <bdi>{feed().message}</bdi>,
              at: clockText(props.follower.asOf(), props.zone),
              next: clockText(feed().retryAt, props.zone),
            })}
          </span>
        </p>
      )}
    </Show>
  );
}

/** Explains why the console polls the server instead of receiving changes. */
function Polled(props: { follower: Follower }): JSX.Element {
  return (
    <Show when={!props.follower.isPaused() && props.follower.polled()}>
      {(reason) => (
        <p class="follow-trouble" data-state="polled">
          <Icon name="clock" />
          <bdi>{reason()}</bdi>
        </p>
      )}
    </Show>
  );
}

function Nothing(props: { follower: Follower }): JSX.Element {
  return (
    <div class="empty">
      <strong>
        {props.follower.feed().state === 'starting'
          ? texts.follow.loadingLastRows
          : texts.common.noRows}
      </strong>
    </div>
  );
}

function unseenText({ count, isLowerBound }: Unseen): string {
  const text = rowsText(count).replace(' ', ' new ');
  return isLowerBound ? fill(texts.follow.atLeast, { count: text }) : text;
}

/** Formats the time of day in the selected time zone. */
function clockText(at: Date | undefined, zone: Zone): string {
  if (!at) {
    return '–';
  }
  return zone === 'utc' ? at.toISOString().slice(11, 19) : at.toTimeString().slice(0, 8);
}
