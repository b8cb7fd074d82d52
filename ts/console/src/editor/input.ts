/**
 * Handles typing over a selection. Otherwise, Chromium replaces the selected elements and keeps
 * their appearance in style attributes, which violates the content security policy.
 */
import { EditorView } from '@codemirror/view';

export const plainTyping = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { from, to, empty } = view.state.selection.main;
    const text = event.data;
    if (event.inputType !== 'insertText' || event.isComposing || empty || text === null) {
      return false;
    }
    event.preventDefault();
    const replace = () =>
      view.state.update(view.state.replaceSelection(text), { userEvent: 'input.type' });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handle) => handle(view, from, to, text, replace))) {
      view.dispatch(replace());
    }
    return true;
  },
});
