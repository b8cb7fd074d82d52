/** Shows the profile of a column: counts, range, distribution and frequent values. */
import { createMemo, For, Show, type JSX } from 'solid-js';
import { grouped } from '../model/format.js';
import type { Bin, Profile } from '../model/profile.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export function ProfileFacts(props: { profile: Profile }): JSX.Element {
  const facts = createMemo(() => factsOf(props.profile));
  const maxCount = createMemo(() => Math.max(...props.profile.bins.map(({ count }) => count)));
  return (
    <>
      <dl class="profile-facts">
        <For each={facts()}>
          {([name, text]) => (
            <>
              <dt>{name}</dt>
              <dd>{text}</dd>
            </>
          )}
        </For>
      </dl>
      <Show when={props.profile.bins.length > 0}>
        <h3>{texts.profile.distribution}</h3>
        <svg
          class="histogram"
          viewBox={`0 0 ${props.profile.bins.length * 4} 32`}
          preserveAspectRatio="none"
          role="img"
          aria-label={fill(texts.profile.distributionFromTo, {
            min: props.profile.min ?? '',
            max: props.profile.max ?? '',
          })}
        >
          <For each={props.profile.bins}>
            {(bin, index) => (
              <rect
                class="bar"
                x={index() * 4 + 0.3}
                width="3.4"
                y={32 - barHeight(bin.count, maxCount())}
                height={barHeight(bin.count, maxCount())}
              >
                <title>{`${nameOf(bin)}: ${grouped(String(bin.count))}`}</title>
              </rect>
            )}
          </For>
        </svg>
      </Show>
      <Show when={props.profile.frequent.length > 0}>
        <h3>{texts.profile.mostFrequent}</h3>
        <ul class="bars">
          <For each={props.profile.frequent}>
            {({ text, count }) => (
              <li>
                <bdi class="data">{text === '' ? texts.profile.emptyString : text}</bdi>
                <span class="data">{grouped(String(count))}</span>
                <svg viewBox="0 0 100 5" preserveAspectRatio="none" aria-hidden="true">
                  <rect
                    class="bar"
                    height="5"
                    width={(100 * count) / (props.profile.frequent[0]?.count ?? count)}
                  />
                </svg>
              </li>
            )}
          </For>
        </ul>
      </Show>
    </>
  );
}

/** Returns the height of a bar. Every nonzero count gets a visible bar. */
function barHeight(count: number, maxCount: number): number {
  return count === 0 ? 0 : Math.max(1, (32 * count) / maxCount);
}

function nameOf({ name, from, to }: Bin): string {
  return name ?? fill(texts.common.fromTo, { from: short(from), to: short(to) });
}

function short(value: number): string {
  return grouped(String(Number(value.toPrecision(4))));
}

function factsOf(profile: Profile): [string, string][] {
  const { rows, nulls, empty, distinct, min, max, mean, maxLength } = profile;
  const percentage = rows === 0 ? '' : ` (${Number(((100 * nulls) / rows).toFixed(1))} %)`;
  const facts: [string, string][] = [
    [texts.common.rows, grouped(String(rows))],
    [texts.profile.null, nulls === 0 ? '0' : `${grouped(String(nulls))}${percentage}`],
  ];
  const add = (name: string, text: string | undefined): void => {
    if (text !== undefined) {
      facts.push([name, text]);
    }
  };
  add(texts.profile.distinct, distinct === undefined ? undefined : grouped(String(distinct)));
  add(texts.profile.emptyStrings, empty > 0 ? grouped(String(empty)) : undefined);
  add(texts.profile.min, min?.replace('T', ' ').replace(/Z$/, ''));
  add(texts.profile.max, max?.replace('T', ' ').replace(/Z$/, ''));
  add(
    texts.profile.mean,
    mean === undefined ? undefined : grouped(String(Number(mean.toPrecision(8)))),
  );
  add(
    texts.profile.longest,
    maxLength === undefined
      ? undefined
      : fill(texts.profile.characters, { count: grouped(String(maxLength)) }),
  );
  return facts;
}
