/** What a tab is, and what it shows. */

/** What a tab shows that follows a table or a query instead of running statements. */
export interface FollowSpec {
  /** The table, or what the query is called. */
  readonly table: string;
  readonly query?: string;
  /** How many of the last rows. */
  readonly rows: number;
  readonly view: 'grid' | 'chart';
}

/** What a tab is that shows a notebook; its draft is the notebook's text. */
export interface NotebookSpec {
  /** Whether its statements may run by themselves; not before the user has run one of them. */
  readonly approved: boolean;
  /** Where the server keeps it. */
  readonly kept?: KeptNotebook;
}

/** What the server has of a notebook, as it was when it was read or saved. */
export interface KeptNotebook {
  readonly id: string;
  readonly version: number;
  readonly title: string;
  readonly text: string;
  /** Whether it is this user's to change, to share and to delete. */
  readonly access: 'own' | 'write' | 'read';
  /** By which it is read, where it is not shared otherwise. */
  readonly link?: string;
}

export interface Tab {
  readonly id: string;
  title: string;
  draft: string;
  /** Values of the draft's parameters, by name. */
  parameters?: Readonly<Record<string, string>>;
  follow?: FollowSpec;
  notebook?: NotebookSpec;
  /** How its result is looked at; as a grid unless chosen. */
  view?: ResultView;
  chart?: ChartSpec;
}

/** What was chosen of a tab's chart; it holds for results of the same columns. */
export interface ChartSpec {
  readonly columns?: string;
  readonly kind?: string;
  /** By their names. */
  readonly options?: Readonly<Record<string, string>>;
  /** Series that were shown or hidden by hand. */
  readonly series?: Readonly<Record<string, boolean>>;
}

export type ResultView = 'grid' | 'chart' | 'plan' | 'log';
