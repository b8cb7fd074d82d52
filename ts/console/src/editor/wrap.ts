/** Line wrapping in the editor. The user's choice is stored in the browser. */
import { Compartment, type Extension } from '@codemirror/state';
import { EditorView, type KeyBinding } from '@codemirror/view';
import { storedChoice } from '../page/choice.js';

const [wraps, setWraps] = storedChoice('tidemark.wrap', ['no', 'yes']);
const compartment = new Compartment();

function chosen(): Extension {
  return wraps() === 'yes' ? EditorView.lineWrapping : [];
}

export function wrapping(): Extension {
  return compartment.of(chosen());
}

export const wrapKey: KeyBinding = {
  key: 'Alt-z',
  run: (view) => {
    setWraps(wraps() === 'yes' ? 'no' : 'yes');
    view.dispatch({ effects: compartment.reconfigure(chosen()) });
    return true;
  },
};
