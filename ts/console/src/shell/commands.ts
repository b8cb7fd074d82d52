/** Entries of the palette: commands, tables, and queries of the log. */
import { KIND_ICONS, KIND_WORDS, type TableEntry } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { approximate } from '../model/format.js';
import type { Session } from '../state/session.js';
import type { LogEntry } from '../state/history.js';
import type { IconName } from '../ui/icons.js';
import { openPage } from '../page/pages.js';
import { exportTabs, importTabs } from './tab-menu.js';
import { withNotebooks } from '../notebook/load.js';
import { nextTheme, setTheme, THEME_NAMES } from '../ui/theme.js';
import { editor } from '../state/editor.js';
import { copyLink } from './share.js';

export interface Command {
  readonly group: 'Tables' | 'Commands' | 'Follow' | 'Query log';
  readonly icon: IconName;
  readonly name: string;
  readonly hint?: string;
  readonly keys?: string;
  readonly run: () => void;
}

export function commandsOf(session: Session, help: () => void): Command[] {
  const tables = session.schema.known;
  return [
    ...tables.map((table) => tableCommand(session, table)),
    ...namedCommands(session, help),
    ...tables
      .filter(({ kind }) => kind !== 'view')
      .map(({ name }): Command => ({
        group: 'Follow',
        icon: 'follow',
        name: `Follow ${name}`,
        run: () => session.tabs.follow(name),
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
    run: () => session.statements.preview(`SELECT * FROM ${quoted(name)} LIMIT 1000`),
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
    command('play', 'Run statement', 'Ctrl+Enter', () => void session.statements.run()),
    command(
      'play',
      'Run all statements',
      'Ctrl+Shift+Enter',
      () => void session.statements.runAll(),
    ),
    command('stop', 'Cancel running query', 'Alt+K', () => session.statements.cancel()),
    command('format', 'Format tab', 'Alt+Shift+F', () => editor()?.format()),
    command('link', 'Copy link to statement', 'Alt+L', () => copyLink(workspace, false)),
    command('link', 'Copy link to tab', 'Alt+Shift+L', () => copyLink(workspace, true)),
    command('plus', 'New tab', 'Alt+T', () => {
      workspace.add();
      editor()?.focus();
    }),
    command('close', 'Close tab', 'Alt+W', () => session.tabs.close(workspace.active())),
    command('refresh', 'Reopen last closed tab', 'Alt+Shift+T', () => session.tabs.reopen()),
    command('notebook', 'New notebook', '', () => withNotebooks((all) => all.create(workspace))),
    command('notebook', 'New dashboard', '', () =>
      withNotebooks((all) => all.createDashboard(workspace)),
    ),
    command('notebook', 'Open notebook file', '', () =>
      withNotebooks((all) => all.open(workspace)),
    ),
    command('notebook', 'Create notebook from query log', '', () =>
      withNotebooks((all) => all.fromLog(workspace)),
    ),
    command('export', 'Export all tabs', '', () => exportTabs(session)),
    command('plus', 'Import tabs', '', () => importTabs(session)),
    command('refresh', 'Refresh schema', '', () => void session.schema.refresh()),
    command('grid', 'Show grid', 'Alt+1', () => workspace.setView('grid')),
    command('chart', 'Show chart', 'Alt+2', () => workspace.setView('chart')),
    command('plan', 'Show query plan', 'Alt+E', () => session.statements.explain()),
    command('log', 'Show query log', 'Alt+4', () => workspace.setView('log')),
    command('tables', 'Open tables and ingestion', '', () => openPage('tables')),
    command('import', 'Import files', '', () => openPage('import')),
    command('queries', 'Open running queries', '', () => openPage('queries')),
    command('clock', 'Open background jobs', '', () => openPage('jobs')),
    ...(session.server.keepsNotebooks
      ? [command('notebook', 'Open notebooks', '', () => openPage('notebooks'))]
      : []),
    ...(session.server.listsUsers()
      ? [command('access', 'Open users and permissions', '', () => openPage('access'))]
      : []),
    command('sql', 'Open SQL workspace', '', () => openPage('sql')),
    command('theme', `Switch to the ${THEME_NAMES[nextTheme()]} theme`, '', () =>
      setTheme(nextTheme()),
    ),
    command('help', 'Show all shortcuts', '?', help),
  ];
}

/** Each query once, with its last run. */
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
    run: () => session.tabs.edit(text),
  }));
}
