/**
 * The editor's look. Only roles of the design tokens: they reach into the shadow root by
 * inheritance, so one theme serves light, dark and high contrast.
 */
import { EditorView } from '@codemirror/view';

const DATA_FONT = 'var(--font-data)';

export const theme = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'var(--bg-surface)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': {
    fontFamily: DATA_FONT,
    fontSize: 'var(--text-3)',
    lineHeight: '20px',
    fontVariantLigatures: 'none',
    scrollbarWidth: 'thin',
    scrollbarColor: 'var(--line-control) transparent',
  },
  '.cm-content': { padding: '4px 0 12px', caretColor: 'var(--text)' },
  '.cm-line': { padding: '0 12px', borderLeft: '2px solid transparent' },
  '.cm-in-statement': { borderLeftColor: 'var(--accent)' },
  '.cm-activeLine': { backgroundColor: 'var(--bg-active-line)' },
  '.cm-gutters': {
    backgroundColor: 'var(--bg-surface)',
    color: 'var(--text-faint)',
    border: 'none',
  },
  '.cm-lineNumbers .cm-gutterElement': {
    minWidth: '30px',
    padding: '0 8px 0 0',
    fontSize: 'var(--text-2)',
  },
  '.cm-activeLineGutter': {
    backgroundColor: 'transparent',
    color: 'var(--text)',
    fontWeight: 'var(--weight-strong)',
  },
  '.cm-run-gutter': { width: '24px', cursor: 'pointer' },
  '.cm-run-mark': { display: 'grid', placeItems: 'center', height: '20px' },
  '.cm-run-mark svg': {
    width: '13px',
    height: '13px',
    fill: 'none',
    stroke: 'currentcolor',
    strokeWidth: '1.8',
    strokeLinecap: 'round',
    strokeLinejoin: 'round',
  },
  '.cm-run-ready': { color: 'var(--text-faint)' },
  '.cm-run-gutter:hover .cm-run-ready': { color: 'var(--accent-text)' },
  '.cm-run-done': { color: 'var(--ok)' },
  '.cm-run-failed': { color: 'var(--error)' },
  '.cm-run-running': { color: 'var(--accent)' },
  '.cm-run-cancelled': { color: 'var(--warn)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)', borderLeftWidth: '1.5px' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': {
    backgroundColor: 'var(--bg-selected)',
  },
  '.cm-selectionBackground': { backgroundColor: 'var(--bg-hover)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': {
    backgroundColor: 'transparent',
    boxShadow: 'inset 0 0 0 1px var(--line-control)',
    borderRadius: '2px',
  },
  '&.cm-focused .cm-nonmatchingBracket': {
    backgroundColor: 'transparent',
    color: 'var(--error)',
  },
  '.cm-squiggle': {
    textDecoration: 'underline wavy var(--error) 1.5px',
    textUnderlineOffset: '3px',
    textDecorationSkipInk: 'none',
    backgroundColor: 'var(--error-bg)',
    borderRadius: '2px',
  },
  '.cm-hover-card': { maxWidth: '520px', padding: '6px 10px', color: 'var(--text)' },
  '.cm-hover-card code': {
    fontFamily: DATA_FONT,
    fontSize: 'var(--text-2)',
    whiteSpace: 'pre-wrap',
    color: 'var(--syn-function)',
  },
  '.cm-hover-card p': { margin: '2px 0 0', fontSize: 'var(--text-2)', color: 'var(--text-muted)' },
  '.cm-completionInfo': {
    maxWidth: '420px',
    padding: '6px 10px',
    fontFamily: DATA_FONT,
    fontSize: 'var(--text-2)',
    whiteSpace: 'pre-wrap',
    color: 'var(--text-muted)',
  },
  '.cm-placeholder': { color: 'var(--text-faint)' },
  '.tok-keyword': { color: 'var(--syn-keyword)', fontWeight: 'var(--weight-strong)' },
  '.tok-function': { color: 'var(--syn-function)' },
  '.tok-string': { color: 'var(--syn-string)' },
  '.tok-number': { color: 'var(--syn-number)' },
  '.tok-variable': { color: 'var(--syn-variable)' },
  '.tok-comment': { color: 'var(--syn-comment)', fontStyle: 'italic' },
  '.tok-operator': { color: 'var(--syn-operator)' },
  '.cm-tooltip': {
    border: '1px solid var(--line)',
    borderRadius: 'var(--radius-3)',
    backgroundColor: 'var(--bg-raised)',
    boxShadow: 'var(--shadow-1)',
    overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': {
    fontFamily: DATA_FONT,
    fontSize: 'var(--text-2)',
    maxHeight: '234px',
    padding: '4px',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': {
    padding: '3px 8px',
    borderRadius: 'var(--radius-1)',
    color: 'var(--text)',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    backgroundColor: 'var(--bg-selected)',
    color: 'var(--accent-text)',
  },
  '.cm-completionMatchedText': { textDecoration: 'underline', color: 'var(--accent-text)' },
  '.cm-completionDetail': {
    marginLeft: '12px',
    color: 'var(--text-faint)',
    fontStyle: 'normal',
    fontSize: 'var(--text-1)',
  },
});
