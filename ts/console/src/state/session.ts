/**
 * The state of a console page, with one object per concern. Each view receives only the objects
 * that it needs.
 */
import { Activity } from './activity.js';
import { Jobs } from './jobs.js';
import { Plans } from './plans.js';
import { Problems } from './problems.js';
import { Results } from './results.js';
import { Schema } from './schema.js';
import { Server } from './server.js';
import { Statements } from './statements.js';
import { Tabs } from './tabs.js';
import { Vitals } from './vitals.js';
import type { Workspace } from './workspace.js';

export class Session {
  readonly workspace: Workspace;
  readonly server = new Server();
  readonly schema = new Schema();
  readonly activity = new Activity();
  readonly vitals = new Vitals();
  readonly jobs = new Jobs();
  readonly problems = new Problems(this.schema);
  readonly plans: Plans;
  readonly results: Results;
  readonly tabs: Tabs;
  readonly statements: Statements;

  constructor(workspace: Workspace) {
    this.workspace = workspace;
    workspace.versions = () => this.schema.versions();
    this.plans = new Plans(workspace);
    this.results = new Results(workspace);
    this.tabs = new Tabs(this);
    this.statements = new Statements(this);
  }
}
