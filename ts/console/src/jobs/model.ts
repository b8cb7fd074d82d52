/** Filters jobs and names them for display. This module has no side effects. */
import type { Job, JobState } from '../state/jobs.js';
import { texts } from '../texts.js';

export const FILTERS = ['all', 'running', 'trouble', 'resting'] as const;
export type JobFilter = (typeof FILTERS)[number];

const STATES: Readonly<Record<Exclude<JobFilter, 'all'>, readonly JobState[]>> = {
  running: ['running'],
  trouble: ['failing', 'stopped'],
  resting: ['waiting', 'paused'],
};

/** Returns the filter that the URL names, or the filter for all jobs. */
export function filterOf(subject: string): JobFilter {
  return FILTERS.find((filter) => filter === subject) ?? 'all';
}

/**
 * Returns the jobs that match the filter and whose kind, name, state or error contains the search
 * text.
 */
export function filtered(jobs: readonly Job[], filter: JobFilter, search: string): Job[] {
  const text = search.trim().toLowerCase();
  return jobs.filter(
    (job) =>
      (filter === 'all' || STATES[filter].includes(job.state)) &&
      [job.name, job.kind, jobTitle(job), job.state, job.lastError ?? ''].some((field) =>
        field.toLowerCase().includes(text),
      ),
  );
}

const TITLES: Readonly<Record<string, string>> = {
  refresh: texts.jobs.refreshOf,
  checkpoint: texts.jobs.checkpoint,
  expiry: texts.jobs.rowExpiryIn,
};

/** Returns the title of a job. For an unknown kind, the title is the server's name for the kind. */
export function jobTitle({ kind }: Pick<Job, 'kind'>): string {
  return TITLES[kind] ?? kind;
}
