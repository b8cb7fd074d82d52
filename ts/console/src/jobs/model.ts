/** Which jobs are shown, and how they are called. Pure. */
import type { Job, JobState } from '../state/jobs.js';

export const FILTERS = ['all', 'running', 'trouble', 'resting'] as const;
export type JobFilter = (typeof FILTERS)[number];

const STATES: Readonly<Record<Exclude<JobFilter, 'all'>, readonly JobState[]>> = {
  running: ['running'],
  trouble: ['failing', 'stopped'],
  resting: ['waiting', 'paused'],
};

/** The filter that an address names; all of them otherwise. */
export function filterOf(subject: string): JobFilter {
  return FILTERS.find((filter) => filter === subject) ?? 'all';
}

/** Those in a state, of a kind, name or error with the wanted text in it. */
export function filtered(jobs: readonly Job[], filter: JobFilter, wanted: string): Job[] {
  const text = wanted.trim().toLowerCase();
  return jobs.filter(
    (job) =>
      (filter === 'all' || STATES[filter].includes(job.state)) &&
      [job.name, job.kind, jobTitle(job), job.state, job.lastError ?? ''].some((part) =>
        part.toLowerCase().includes(text),
      ),
  );
}

const TITLES: Readonly<Record<string, string>> = {
  refresh: 'Refresh of',
  checkpoint: 'Checkpoint',
  expiry: 'Rows that have lived their time',
};

/** What a job does; a kind that is not known yet by its own name. */
export function jobTitle({ kind }: Pick<Job, 'kind'>): string {
  return TITLES[kind] ?? kind;
}
