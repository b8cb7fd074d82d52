/** This version's documentation, and `llms.txt`, which lists it for language models. */
import { llmsText } from '../../mcp/llms-text.js';
import type { HttpPaths } from '../paths.js';
import { answer, answerText, type HttpServices, type Route, TEXT_TYPE } from '../route.js';

const MARKDOWN_TYPE = 'text/markdown; charset=utf-8';

export function documentRoutes({ documents }: HttpServices, { base }: HttpPaths): Route[] {
  const index: Route = {
    path: `${base}/llms.txt`,
    methods: ['GET'],
    access: 'open',
    errors: 'text',
    about: 'lists the documentation for language models',
    handle: (context) => {
      answer(context, 200, TEXT_TYPE, llmsText(documents.pages));
    },
  };
  const pages = documents.names.map((name): Route => ({
    path: `${base}/docs/${name}`,
    methods: ['GET'],
    access: 'open',
    errors: 'text',
    about: null,
    handle: (context) => {
      const page = documents.page(name);
      if (page === null) {
        answerText(context, 404, 'Not Found');
      } else {
        answer(context, 200, MARKDOWN_TYPE, page.text);
      }
    },
  }));
  return [index, ...pages];
}
