/**
 * Button for one permission on one object. It shows how the principal holds the permission, and a
 * click plans a change.
 */
import { For, type JSX } from 'solid-js';
import { concerns, groupsOf, isGranting, markOf, type Mark, type GrantTarget } from './model.js';
import { PermissionMark } from './PermissionMark.js';
import type { AccessState, Rights } from './state.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface RightsProps {
  readonly state: AccessState;
  readonly rights: Rights;
}

/** Legend of the mark shapes. */
export function MarkLegend(): JSX.Element {
  return (
    <p class="access-legend hint">
      <For each={['granted', 'option', 'group', 'inherited', 'part'] as const}>
        {(mark) => (
          <span>
            <PermissionMark mark={mark} />
            {MARK_NAMES[mark]}
          </span>
        )}
      </For>
    </p>
  );
}

const MARK_NAMES: Readonly<Record<Mark, string>> = {
  granted: texts.permissions.granted,
  option: texts.permissions.grantedGrantOption,
  group: texts.permissions.fromAGroup,
  inherited: texts.permissions.fromAllTables,
  administrator: texts.permissions.throughAdministrator,
  implied: texts.permissions.impliedOtherColumns,
  part: texts.permissions.onSomeColumns,
  none: texts.permissions.notGranted,
};

export function RightButton(
  props: RightsProps & {
    permission: string;
    target: GrantTarget;
    /** Name of the object, or absent if the label needs only the permission's name. */
    object?: string;
  },
): JSX.Element {
  const name = (): string => props.rights.principal.name;
  const mark = (): Mark => markOf(props.rights.grants, props.permission, props.target, name());
  const groups = (): readonly string[] =>
    groupsOf(props.rights.grants, props.permission, props.target, name());
  const planned = (): boolean =>
    props.state.changes().some((change) => concerns(change, props.permission, props.target));
  const shown = (): Mark => (planned() ? (isGranting(mark()) ? 'granted' : 'none') : mark());
  const nameOf = (one: Mark): string => {
    if (one === 'inherited' && props.target.column !== undefined) {
      return texts.permissions.fromTableOrAll;
    }
    const from =
      groups().length === 0
        ? ''
        : fill(texts.permissions.fromGroups, { groups: groups().join(', ') });
    const isGranted = one === 'granted' || one === 'option';
    return one === 'group'
      ? from
      : MARK_NAMES[one] +
          (isGranted && from !== '' ? fill(texts.permissions.andFrom, { source: from }) : '');
  };
  const label = (): string => {
    const where =
      props.object === undefined ? '' : fill(texts.permissions.onObject, { object: props.object });
    const now = `${props.permission}${where}: ${nameOf(mark())}`;
    return planned() ? fill(texts.permissions.pending, { now, next: nameOf(shown()) }) : now;
  };
  return (
    <button
      class="permission"
      classList={{ planned: planned() }}
      aria-label={label()}
      title={label()}
      onClick={() => props.state.plan(props.permission, props.target, mark())}
    >
      <PermissionMark mark={shown()} />
    </button>
  );
}
