/** Dialog for the unit, digits, axis, thresholds and annotations of a chart. */
import { createSignal, For, type JSX } from 'solid-js';
import { FormDialog } from '../dialogs/FormDialog.js';
import { FormField, type FieldSpec } from '../dialogs/FormField.js';
import { OPTION_NAMES, optionTrouble, UNITS, withoutEmpty, type ChartOptions } from './options.js';

const FIELDS: readonly FieldSpec[] = [
  {
    name: 'unit',
    label: 'Unit',
    hint: UNITS.map(([value]) => value).join(', ') + ', or any other text',
    isHalf: true,
  },
  { name: 'decimals', label: 'Decimals', hint: '0 to 9', isHalf: true },
  { name: 'least', label: 'Axis min', hint: 'automatic if empty', isHalf: true },
  { name: 'most', label: 'Axis max', hint: 'automatic if empty', isHalf: true },
  {
    name: 'scale',
    label: 'Scale',
    choices: [
      ['linear', 'Linear'],
      ['log', 'Logarithmic'],
    ],
    isHalf: true,
  },
  { name: 'thresholds', label: 'Thresholds', hint: '80 warn, 95 error', isHalf: true },
  {
    name: 'annotations',
    label: 'Annotation query',
    hint: 'A time, optionally an end time, and a text: SELECT ts, what FROM events',
    isLong: true,
  },
];

export function OptionsDialog(props: {
  options: ChartOptions;
  set: (options: ChartOptions) => void;
  onClose: () => void;
}): JSX.Element {
  const [draft, setDraft] = createSignal<Readonly<Record<string, string>>>({
    ...Object.fromEntries(OPTION_NAMES.map((name) => [name, ''])),
    scale: 'linear',
    ...props.options,
  });
  return (
    <FormDialog
      title="Chart"
      name="options"
      keep="Cancel"
      act="Apply"
      isComplete
      submit={() => {
        const options = withoutEmpty(draft());
        const trouble = optionTrouble(options) ?? '';
        if (trouble === '') {
          props.set(options);
        }
        return Promise.resolve(trouble);
      }}
      onClose={() => props.onClose()}
    >
      <div class="dialog-fields pairs">
        <For each={FIELDS}>
          {(field) => (
            <FormField
              field={field}
              value={draft()[field.name] ?? ''}
              set={(value) => setDraft({ ...draft(), [field.name]: value })}
            />
          )}
        </For>
      </div>
    </FormDialog>
  );
}
