/** Whether long lines wrap at the editor's edge or scroll, as the user last chose. */
import { Compartment, type Extension } from '@codemirror/state';
import { EditorView, type KeyBinding } from '@codemirror/view';
import { keptChoice } from '../page/choice.js';

const [wraps, setWraps] = keptChoice('tidemark.wrap', ['no', 'yes']);
const place = new Compartment();

function chosen(): Extension {
  return wraps() === 'yes' ? EditorView.lineWrapping : [];
}

export function wrapping(): Extension {
  return place.of(chosen());
}

export const wrapKey: KeyBinding = {
  key: 'Alt-z',
  run: (view) => {
    setWraps(wraps() === 'yes' ? 'no' : 'yes');
    view.dispatch({ effects: place.reconfigure(chosen()) });
    return true;
  },
};
