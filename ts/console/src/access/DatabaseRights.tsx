/** Permissions on the whole database, the server or its users, as opposed to single tables. */
import { createMemo, createSignal, For, type JSX } from 'solid-js';
import { databaseGroups } from './catalogue.js';
import { EVERYWHERE, markOf } from './model.js';
import { RightButton, type RightsProps } from './RightButton.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** True if the section is expanded. The state is kept when the user selects another principal. */
const [isOpen, setOpen] = createSignal(false);

export function DatabaseRights(props: RightsProps): JSX.Element {
  const groups = createMemo(() => databaseGroups(props.rights.catalogue));
  const all = createMemo(() => groups().flatMap(({ rights }) => rights));
  const grantedCount = (): number => {
    const { grants, principal } = props.rights;
    return all().filter((right) => markOf(grants, right, EVERYWHERE, principal.name) !== 'none')
      .length;
  };
  return (
    <details
      class="access-database"
      open={isOpen()}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        {texts.permissions.databasePermissions}
        <span class="hint">
          {fill(texts.common.countOfAll, { count: grantedCount(), all: all().length })}
        </span>
      </summary>
      <div class="access-database-groups">
        <For each={groups()}>
          {(group) => (
            <fieldset>
              <legend>{group.name}</legend>
              <For each={group.rights}>
                {(right) => (
                  <span>
                    <RightButton {...props} permission={right} target={EVERYWHERE} />
                    {right}
                  </span>
                )}
              </For>
            </fieldset>
          )}
        </For>
      </div>
    </details>
  );
}
