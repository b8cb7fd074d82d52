/** Dialog to edit the unit, decimals, axis, thresholds and annotations of a chart. */
import { createSignal, For, type JSX } from 'solid-js';
import { FormDialog } from '../dialogs/FormDialog.js';
import { FormField, type FieldSpec } from '../dialogs/FormField.js';
import { OPTION_NAMES, optionTrouble, UNITS, withoutEmpty, type ChartOptions } from './options.js';
import { texts } from '../texts.js';

const FIELDS: readonly FieldSpec[] = [
  {
    name: 'unit',
    label: texts.common.unit,
    hint: UNITS.map(([value]) => value).join(', ') + texts.chartOptions.orAnyText,
    isHalf: true,
  },
  {
    name: 'decimals',
    label: texts.chartOptions.decimals,
    hint: texts.chartOptions.decimalsHint,
    isHalf: true,
  },
  {
    name: 'least',
    label: texts.chartOptions.axisMin,
    hint: texts.chartOptions.axisHint,
    isHalf: true,
  },
  {
    name: 'most',
    label: texts.chartOptions.axisMax,
    hint: texts.chartOptions.axisHint,
    isHalf: true,
  },
  {
    name: 'scale',
    label: texts.chartOptions.scale,
    choices: [
      ['linear', texts.chartOptions.linear],
      ['log', texts.chartOptions.logarithmic],
    ],
    isHalf: true,
  },
  {
    name: 'thresholds',
    label: texts.chartOptions.thresholds,
    hint: texts.chartOptions.thresholdsHint,
    isHalf: true,
  },
  {
    name: 'annotations',
    label: texts.chartOptions.annotationQuery,
    hint: texts.chartOptions.annotationQueryHint,
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
      title={texts.common.chart}
      name="options"
      cancel={texts.common.cancel}
      act={texts.common.apply}
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
