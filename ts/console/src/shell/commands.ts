/** Everything the palette can do: commands, tables, and the queries of the log. */
import { KIND_ICONS, KIND_WORDS, quoted, type TableEntry } from '../schema/model.js';
import { approximate } from '../model/format.js';
import type { Session } from '../state/session.js';
import type { LogEntry } from '../state/history.js';
import type { IconName } from './icons.js';
import { openPage } from './pages.js';
import { exportTabs, importTabs, withNotebooks } from './tab-menu.js';
import { nextTheme, setTheme, THEME_NAMES } from './theme.js';

export interface Command {
  readonly group: 'Tables' | 'Commands' | 'Follow' | 'Query log';
  readonly icon: IconName;
  readonly name: string;
  readonly hint?: string;
  readonly keys?: string;
  readonly run: () => void;
}

export function commandsOf(session: Session, help: () => void): Command[] {
  const loaded = session.schema.tables();
  const tables = loaded.state === 'ready' ? loaded.value : [];
  return [
    ...tables.map((table) => tableCommand(session, table)),
    ...namedCommands(session, help),
    ...tables
      .filter(({ kind }) => kind !== 'view')
      .map(({ name }): Command => ({
        group: 'Follow',
        icon: 'follow',
        name: `Follow ${name}`,
        run: () => session.follow(name),
      })),
    ...logged(session),
  ];
}

function tableCommand(session: Session, { name, kind, rows }: TableEntry): Command {
  return {
    group: 'Tables',
    icon: KIND_ICONS[kind],
    name,
    hint: rows === undefined ? KIND_WORDS[kind] : `${approximate(rows)} rows`,
    run: () => session.preview(`SELECT * FROM ${quoted(name)} LIMIT 1000`),
  };
}

function namedCommands(session: Session, help: () => void): Command[] {
  const { workspace } = session;
  const command = (icon: IconName, name: string, keys: string, run: () => void): Command => ({
    group: 'Commands',
    icon,
    name,
    ...(keys === '' ? {} : { keys }),
    run,
  });
  return [
    command('play', 'Run the statement', 'Ctrl+Enter', () => void session.run()),
    command('play', 'Run all statements', 'Ctrl+Shift+Enter', () => void session.runAll()),
    command('stop', 'Cancel the running query', 'Alt+K', () => session.cancel()),
    command('format', 'Format the tab', 'Alt+Shift+F', () => session.editor?.format()),
    command('link', 'Copy a link to the statement', 'Alt+L', () => session.copyLink(false)),
    command('link', 'Copy a link to the whole tab', 'Alt+Shift+L', () => session.copyLink(true)),
    command('plus', 'New tab', 'Alt+T', () => {
      workspace.add();
      session.editor?.focus();
    }),
    command('close', 'Close the tab', 'Alt+W', () => session.closeTab(workspace.active())),
    command('refresh', 'Reopen the last closed tab', 'Alt+Shift+T', () => session.reopenTab()),
    command('notebook', 'New notebook', '', () => withNotebooks((all) => all.create(session))),
    command('notebook', 'New dashboard', '', () =>
      withNotebooks((all) => all.createDashboard(session)),
    ),
    command('notebook', 'Open a notebook file', '', () =>
      withNotebooks((all) => all.open(session)),
    ),
    command('notebook', 'Notebook of the query log', '', () =>
      withNotebooks((all) => all.fromLog(session)),
    ),
    command('export', 'Save all tabs to a file', '', () => exportTabs(session)),
    command('plus', 'Open tabs from a file', '', () => importTabs(session)),
    command('refresh', 'Read the schema again', '', () => void session.schema.refresh()),
    command('grid', 'Show the grid', 'Alt+1', () => workspace.setView('grid')),
    command('chart', 'Show the chart', 'Alt+2', () => workspace.setView('chart')),
    command('plan', 'Show how the statement would run', 'Alt+E', () => session.explain()),
    command('log', 'Show the query log', 'Alt+4', () => workspace.setView('log')),
    command('tables', 'Open tables and ingestion', '', () => openPage('tables')),
    command('import', 'Import files', '', () => openPage('import')),
    command('queries', 'Open the running queries', '', () => openPage('queries')),
    command('clock', 'Open the background jobs', '', () => openPage('jobs')),
    ...(session.keepsNotebooks
      ? [command('notebook', 'Open the notebooks', '', () => openPage('notebooks'))]
      : []),
    ...(session.listsUsers()
      ? [command('access', 'Open users and permissions', '', () => openPage('access'))]
      : []),
    command('sql', 'Open the SQL workspace', '', () => openPage('sql')),
    command('theme', `Switch to the theme ${THEME_NAMES[nextTheme()]}`, '', () =>
      setTheme(nextTheme()),
    ),
    command('help', 'Show all shortcuts', '?', help),
  ];
}

/** Each query once, as it ran last. */
function logged(session: Session): Command[] {
  const seen = new Map<string, LogEntry>();
  for (const entry of session.workspace.log()) {
    const { text } = entry.run.statement;
    seen.set(text, seen.get(text) ?? entry);
  }
  return [...seen].map(([text, { at }]) => ({
    group: 'Query log',
    icon: 'log',
    name: text.replace(/\s+/g, ' '),
    hint: at.toTimeString().slice(0, 8),
    run: () => session.edit(text),
  }));
}
