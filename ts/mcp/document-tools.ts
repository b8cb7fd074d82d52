/**
 * Tools that search and read the documentation for this version. The pages are also available as
 * resources.
 */
import { type McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { ReadResourceResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

import { type Documents, type Page, sectionsOf } from './documents.js';
import { ToolError } from './failure.js';
import type { Setting } from './setting.js';
import { addTool } from './tool.js';

const SCHEME = 'tidemark://docs/';
const MARKDOWN = 'text/markdown';
const DEFAULT_RESULTS = 5;
const MAX_RESULTS = 20;
/** Maximum length of a question, in UTF-16 code units. */
const MAX_QUESTION_LENGTH = 1_000;

export function addDocumentTools(server: McpServer, setting: Setting): void {
  addSearch(server, setting);
  addRead(server, setting);
  addResources(server, setting);
}

export function uriOf(page: string): string {
  return SCHEME + page;
}

function addSearch(server: McpServer, { documents }: Setting): void {
  const tool = {
    title: 'Search the documentation',
    description:
      'Finds passages in the documentation of this version of Tidemark: SQL, functions, limits, ' +
      'configuration, protocols, clients. Search for keywords, for example `sample by fill`.',
    input: {
      query: z.string().min(1).max(MAX_QUESTION_LENGTH).describe('Words to search for.'),
      limit: z.number().int().min(1).max(MAX_RESULTS).default(DEFAULT_RESULTS),
    },
    output: {
      results: z.array(
        z.object({
          page: z.string().describe('Page name, for read_doc.'),
          title: z.string(),
          section: z.string().describe('Path of headings, for read_doc.'),
          text: z.string(),
          uri: z.string().describe('URI of the page as a resource.'),
        }),
      ),
    },
  };
  addTool(server, 'search_docs', tool, (input) => ({
    results: documents.search(input.query, input.limit).map(({ page, headings, text }) => ({
      page: page.name,
      title: page.title,
      section: headings.slice(1).join(' > '),
      text,
      uri: uriOf(page.name),
    })),
  }));
}

function addRead(server: McpServer, { documents, limits }: Setting): void {
  const tool = {
    title: 'Read a page of the documentation',
    description:
      'Returns a page of the documentation, or one section. Long pages are split: continue with ' +
      'next_offset. time-series.md is the best introduction to what this dialect adds to SQL.',
    input: {
      page: z.string().min(1).max(MAX_QUESTION_LENGTH).describe('A name such as `time-series.md`.'),
      section: z
        .string()
        .max(MAX_QUESTION_LENGTH)
        .optional()
        .describe('A heading, case-insensitive; omit it to read the whole page.'),
      offset: z.number().int().min(0).default(0).describe('Characters to skip.'),
    },
    output: {
      page: z.string(),
      title: z.string(),
      text: z.string(),
      next_offset: z.number().int().optional(),
    },
  };
  addTool(server, 'read_doc', tool, (input) => {
    const page = pageOf(documents, input.page);
    const text = input.section === undefined ? page.text : sectionText(page, input.section);
    // A UTF-16 code unit is at most three bytes in UTF-8.
    const end = input.offset + Math.max(1, Math.floor(limits.bytes / 3));
    return {
      page: page.name,
      title: page.title,
      text: text.slice(input.offset, end),
      ...(end < text.length ? { next_offset: end } : {}),
    };
  });
}

function pageOf(documents: Documents, name: string): Page {
  const page = documents.page(name) ?? documents.page(`${name}.md`);
  if (page === null) {
    throw new ToolError(
      `page '${name}' does not exist; available pages: ${documents.names.join(', ') || 'none'}`,
    );
  }
  return page;
}

/**
 * Returns the text of a section, including its subsections. `section` is a heading, or a path of
 * headings as returned by search_docs.
 */
function sectionText(page: Page, section: string): string {
  const heading = section.split(' > ').at(-1)?.trim().toLowerCase();
  const sections = sectionsOf(page);
  const at = sections.findIndex((section) => section.heading.toLowerCase() === heading);
  const match = sections[at];
  if (match === undefined) {
    const headings = sections.map((section) => section.heading).filter((heading) => heading !== '');
    throw new ToolError(
      `${page.name} has no section '${section}'; available sections: ` +
        (headings.join(', ') || 'none'),
    );
  }
  const next = sections.findIndex((section, index) => index > at && section.level <= match.level);
  const all = sections.slice(at, next < 0 ? undefined : next);
  return all.map(({ text }) => text).join('\n\n');
}

function addResources(server: McpServer, { documents }: Setting): void {
  const template = new ResourceTemplate(`${SCHEME}{+page}`, {
    list: () => ({
      resources: documents.pages.map(({ name, title, summary }) => ({
        uri: uriOf(name),
        name,
        title,
        description: summary,
        mimeType: MARKDOWN,
      })),
    }),
    complete: { page: (start) => documents.names.filter((name) => name.startsWith(start)) },
  });
  const about = {
    title: 'Documentation',
    description: 'The documentation of this version of Tidemark.',
    mimeType: MARKDOWN,
  };
  server.registerResource('docs', template, about, (uri, { page }): ReadResourceResult => {
    const { text } = pageOf(documents, String(page));
    return { contents: [{ uri: uri.href, mimeType: MARKDOWN, text }] };
  });
}
