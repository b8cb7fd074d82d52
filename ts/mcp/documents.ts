/**
 * The documentation in this package: pages by name, their sections, and search. Pages are read on
 * first use.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';

import { PassageIndex } from './passage-index.js';

/** Paths that are not user documentation: decision records, and the site's start page and files. */
const NOT_PAGES = /^(?:decisions\/|index\.md$|\.)/;
/** Maximum length of a passage, in UTF-16 code units. */
const PASSAGE_UNITS = 1_200;
const HEADING = /^(#{1,6}) (.+)$/;
const FENCE = '```';

export interface Page {
  /** Path below the documentation directory: `connect/python.md`. */
  readonly name: string;
  readonly title: string;
  /** The page's topic in one sentence. */
  readonly summary: string;
  readonly text: string;
}

interface Passage {
  readonly page: Page;
  /** The enclosing headings, starting with the page title. */
  readonly headings: readonly string[];
  readonly text: string;
}

interface Section {
  readonly heading: string;
  /** Level of the heading, from 1; 0 before the first heading. */
  readonly level: number;
  readonly text: string;
}

export class Documents {
  /** Paths of all pages. */
  readonly names: readonly string[];
  readonly #folder: string;
  #pages: ReadonlyMap<string, Page> | null = null;
  #index: PassageIndex<Passage> | null = null;

  /**
   * `folder` is the directory that contains the pages; if it does not exist, there are no pages.
   */
  constructor(folder: string) {
    this.#folder = folder;
    this.names = markdownFiles(folder);
  }

  get pages(): readonly Page[] {
    return [...this.#read().values()];
  }

  page(name: string): Page | null {
    return this.#read().get(name) ?? null;
  }

  /** Returns the passages that match words in `question`, best match first. */
  search(question: string, limit: number): readonly Passage[] {
    this.#index ??= new PassageIndex(
      this.pages.flatMap(passagesOf).map((passage) => ({
        item: passage,
        title: [passage.page.name, ...passage.headings].join(' '),
        text: passage.text,
      })),
    );
    return this.#index.search(question, limit);
  }

  #read(): ReadonlyMap<string, Page> {
    this.#pages ??= new Map(this.names.map((name) => [name, readPage(this.#folder, name)]));
    return this.#pages;
  }
}

/** Lists the pages by directory, starting with the top level. */
function markdownFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((name) => name.replaceAll(sep, '/'))
      .filter((name) => name.endsWith('.md') && !NOT_PAGES.test(name))
      .sort((a, b) => (directoryFirst(a) < directoryFirst(b) ? -1 : 1));
  } catch {
    return [];
  }
}

function directoryFirst(name: string): string {
  return `${posix.dirname(name)}/${name}`;
}

function readPage(folder: string, name: string): Page {
  const text = readFileSync(join(folder, name), 'utf8');
  const [, title = name] = /^# (.+)$/m.exec(text) ?? [];
  return { name, title, summary: summaryOf(text) || title, text };
}

/**
 * The first paragraph of a generated page describes how the page was generated rather than its
 * topic.
 */
const GENERATED_NOTE = /^(?:Generated|Made) (?:by|from) /;
/** Minimum length of an informative summary, in UTF-16 code units. */
const MIN_SUMMARY = 30;

/**
 * Returns the first sentence below the title, without markup, or the first two sentences if the
 * first is short.
 */
function summaryOf(text: string): string {
  const [paragraph = ''] = text
    .replaceAll(/^```[^]*?^```$/gm, '')
    .split(/\n{2,}/)
    .map((paragraph) => paragraph.trim())
    .filter((paragraph) => /^[\p{L}`[*]/u.test(paragraph) && !GENERATED_NOTE.test(paragraph));
  const plain = paragraph
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replaceAll(/[*`]/g, '');
  const sentences = plain.match(/.+?(?:[.:](?= |$)|$)/g) ?? [];
  const [first = '', second = ''] = sentences;
  const summary = first.length < MIN_SUMMARY ? first + second : first;
  return summary.trim().replace(/:$/, '.');
}

/**
 * Splits a page into sections. A section extends from its heading to the next heading of any level.
 */
export function sectionsOf(page: Page): Section[] {
  const sections: { heading: string; level: number; lines: string[] }[] = [
    { heading: '', level: 0, lines: [] },
  ];
  for (const { line, heading } of linesOf(page.text)) {
    if (heading !== null) {
      sections.push({ heading: heading.text, level: heading.level, lines: [] });
    }
    sections.at(-1)?.lines.push(line);
  }
  return sections.map(({ lines, ...section }) => ({ ...section, text: lines.join('\n').trim() }));
}

interface Line {
  readonly line: string;
  readonly heading: { readonly level: number; readonly text: string } | null;
}

/**
 * Splits a page into lines. A line that starts with a hash inside a code block is not a heading.
 */
function linesOf(text: string): Line[] {
  let isCode = false;
  return text.split('\n').map((line) => {
    isCode = line.startsWith(FENCE) ? !isCode : isCode;
    const [, marks, heading] = isCode ? [] : (HEADING.exec(line) ?? []);
    return {
      line,
      heading:
        marks === undefined || heading === undefined
          ? null
          : { level: marks.length, text: heading },
    };
  });
}

/** Converts sections to passages; a long section is split into several passages. */
function passagesOf(page: Page): Passage[] {
  const passages: Passage[] = [];
  let headings: string[] = [];
  let lines: string[] = [];
  let units = 0;
  const close = (): void => {
    const text = lines.join('\n').trim();
    if (text !== '') {
      passages.push({ page, headings, text });
    }
    lines = [];
    units = 0;
  };
  for (const { line, heading } of linesOf(page.text)) {
    if (heading !== null) {
      close();
      headings = [...headings.slice(0, heading.level - 1), heading.text];
    } else {
      if (units > 0 && units + line.length > PASSAGE_UNITS) {
        close();
      }
      lines.push(line);
      units += line.length + 1;
    }
  }
  close();
  return passages;
}
