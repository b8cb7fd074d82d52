/** Shows the server's name, role and colour, with an edit button for authorized users. */
import { createEffect, createResource, createSignal, Show, type JSX } from 'solid-js';
import { FormDialog } from '../dialogs/FormDialog.js';
import { FormField, type FieldSpec } from '../dialogs/FormField.js';
import { mayDo, readOwnRights } from '../state/own-rights.js';
import type { Server } from '../state/server.js';
import { IconButton } from '../ui/IconButton.js';
import { texts } from '../texts.js';

type Choices = NonNullable<FieldSpec['choices']>;

const PERMISSION = 'SETTINGS';
const COLOURS: Choices = [
  ['', texts.common.none],
  ['rgb(200, 40, 30)', texts.instance.red],
  ['rgb(217, 119, 6)', texts.instance.amber],
  ['rgb(22, 130, 70)', texts.instance.green],
  ['rgb(37, 99, 200)', texts.instance.blue],
];
const ROLES: Choices = [
  ['', texts.common.none],
  ['development', texts.instance.development],
  ['testing', texts.instance.testing],
  ['production', texts.instance.production],
];

export function Instance(props: { server: Server }): JSX.Element {
  const { server } = props;
  const [isOpen, setOpen] = createSignal(false);
  const [grants] = createResource(
    () => server.hasUsers && server.savesPreferences,
    () => readOwnRights().catch(() => []),
  );
  const mayChange = (): boolean =>
    server.savesPreferences && (!server.hasUsers || mayDo(grants() ?? [], PERMISSION, ''));
  const preference = (name: string): string => preferenceOf(server, name);
  const paint = (bar: HTMLElement): void => {
    createEffect(() => {
      bar.style.background = preference('instance_rgb');
    });
  };
  return (
    <>
      <span class="instance" title={preference('instance_description')}>
        <Show when={preference('instance_rgb')}>
          <span class="instance-bar" ref={paint} />
        </Show>
        <strong>
          <bdi>{preference('instance_name') || location.hostname}</bdi>
        </strong>
        <Show when={preference('instance_type')}>
          {(role) => <span class="role">{role()}</span>}
        </Show>
      </span>
      <Show when={mayChange()}>
        <IconButton
          icon="options"
          label={texts.instance.edit}
          title={texts.instance.edit}
          onClick={() => setOpen(true)}
        />
      </Show>
      <Show when={isOpen()}>
        <InstanceDialog server={server} onClose={() => setOpen(false)} />
      </Show>
    </>
  );
}

function preferenceOf(server: Server, name: string): string {
  const value = server.settings()?.preferences[name];
  return typeof value === 'string' ? value : '';
}

/** Adds the current value to the choices if it is missing: another client may have set it. */
function withOwn(choices: Choices, own: string): Choices {
  return choices.some(([value]) => value === own) ? choices : [...choices, [own, own]];
}

function InstanceDialog(props: { server: Server; onClose: () => void }): JSX.Element {
  const { server } = props;
  const before = (name: string): string => preferenceOf(server, name);
  const fields: readonly FieldSpec[] = [
    { name: 'instance_name', label: texts.common.name },
    {
      name: 'instance_type',
      label: texts.instance.role,
      choices: withOwn(ROLES, before('instance_type')),
      isHalf: true,
    },
    {
      name: 'instance_rgb',
      label: texts.instance.colour,
      choices: withOwn(COLOURS, before('instance_rgb')),
      isHalf: true,
    },
    { name: 'instance_description', label: texts.instance.description, isLong: true },
  ];
  const read = fields.map(({ name }) => [name, before(name)] as const);
  const [values, setValues] = createSignal<Readonly<Record<string, string>>>(
    Object.fromEntries(read),
  );
  const submit = async (): Promise<string> => {
    const changed = read.filter(([name, value]) => values()[name] !== value);
    await server.savePreferences(
      Object.fromEntries(changed.map(([name]) => [name, values()[name] ?? ''])),
    );
    return '';
  };
  return (
    <FormDialog
      title={texts.instance.thisServer}
      name={before('instance_name')}
      cancel={texts.common.cancel}
      act={texts.instance.save}
      isComplete={read.some(([name, value]) => values()[name] !== value)}
      submit={submit}
      onClose={() => props.onClose()}
    >
      {fields.map((field) => (
        <FormField
          field={field}
          value={values()[field.name] ?? ''}
          set={(value) => setValues({ ...values(), [field.name]: value })}
        />
      ))}
    </FormDialog>
  );
}
