/** Lists the groups of a user or the members of a group, with controls to add and remove them. */
import { For, Show, type JSX } from 'solid-js';
import { quoted } from '../sql/names.js';
import { showFailure } from '../page/notices.js';
import { Icon } from '../ui/icons.js';
import type { Principal } from './model.js';
import { MAX_MEMBER_QUESTIONS, type AccessState, type Rights } from './state.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface MembershipsProps {
  readonly state: AccessState;
  readonly rights: Rights;
  readonly all: readonly Principal[];
}

export function Memberships(props: MembershipsProps): JSX.Element {
  const isGroup = (): boolean => props.rights.principal.kind === 'group';
  const current = (): readonly string[] => (isGroup() ? props.rights.members : props.rights.groups);
  const others = (): readonly string[] =>
    props.all
      .filter(({ kind }) => kind === (isGroup() ? 'user' : 'group'))
      .map(({ name }) => name)
      .filter((name) => !current().includes(name));
  const change = async (verb: 'ADD' | 'REMOVE', other: string): Promise<void> => {
    const { principal } = props.rights;
    const [user, group] = isGroup() ? [other, principal.name] : [principal.name, other];
    const preposition = verb === 'ADD' ? 'TO' : 'FROM';
    const statement = `${verb} USER ${quoted(user)} ${preposition} ${quoted(group)}`;
    await props.state.run(statement, principal).catch(showFailure);
  };
  const users = (): number => props.all.filter(({ kind }) => kind === 'user').length;
  return (
    <div
      class="access-groups"
      role="group"
      aria-label={isGroup() ? texts.access.members : texts.access.groups}
    >
      <span class="hint">
        {isGroup()
          ? fill(texts.access.memberCount, { count: current().length })
          : texts.access.groups}
      </span>
      <For each={current()}>
        {(name) => (
          <button
            class="chip"
            title={
              isGroup()
                ? fill(texts.access.removeFromGroup, { name })
                : fill(texts.access.removeFrom, { name })
            }
            onClick={() => void change('REMOVE', name)}
          >
            <bdi>{name}</bdi>
            <Icon name="close" />
          </button>
        )}
      </For>
      <Show
        when={others().length > 0}
        fallback={
          <span class="hint">
            {isGroup() ? texts.access.noOtherUsers : texts.access.noOtherGroups}
          </span>
        }
      >
        <select
          class="select"
          aria-label={isGroup() ? texts.access.addUserLabel : texts.access.addToGroupLabel}
          onChange={(event) => void change('ADD', event.currentTarget.value)}
        >
          <option value="" selected disabled>
            {isGroup() ? texts.access.addUser : texts.access.addToGroup}
          </option>
          <For each={others()}>{(name) => <option value={name}>{name}</option>}</For>
        </select>
      </Show>
      <Show when={isGroup() && users() > MAX_MEMBER_QUESTIONS}>
        <span class="hint">
          {fill(texts.access.checkedUsers, { count: MAX_MEMBER_QUESTIONS, users: users() })}
        </span>
      </Show>
    </div>
  );
}
