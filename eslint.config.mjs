/** Type-checked linting of everything TypeScript; the console's browser code included. */
import tseslint from 'typescript-eslint';

import { literalTexts } from './ts/console/literal-texts.mjs';

export default tseslint.config(
  { ignores: ['build/', 'target/', 'native/', '**/dist/', '**/*.generated.*', 'test/bench/'] },
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // A switch over a closed list names every member, so that a new one cannot be forgotten.
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      // Numbers and booleans in messages are meant.
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      // `exactOptionalPropertyTypes` makes `x ?? {}` spreads necessary; empty functions are sinks.
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/consistent-indexed-object-style': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-console': 'error',
      'max-lines-per-function': ['error', { max: 70, IIFEs: true }],
      curly: ['error', 'all'],
    },
  },
  {
    // The catalogue contains the texts.
    files: ['ts/console/src/**/*.ts', 'ts/console/src/**/*.tsx'],
    ignores: ['ts/console/src/texts.ts'],
    plugins: { console: { rules: { 'literal-texts': literalTexts } } },
    rules: { 'console/literal-texts': 'error' },
  },
  {
    files: ['test/**/*.ts', 'ts/console/test/**/*.ts'],
    rules: {
      // A test is read from top to bottom.
      'max-lines-per-function': ['error', { max: 120, IIFEs: true }],
      // ava's declarations are promises without an await.
      '@typescript-eslint/no-floating-promises': 'off',
      '@typescript-eslint/explicit-module-boundary-types': 'off',
    },
  },
  {
    files: ['**/*.mjs', '**/*.js'],
    rules: {
      'max-lines-per-function': ['error', { max: 70, IIFEs: true }],
      'no-undef': 'error',
      'no-unused-vars': 'error',
      'prefer-const': 'error',
    },
    languageOptions: {
      ecmaVersion: 2025,
      sourceType: 'module',
      globals: {
        Buffer: 'readonly',
        URL: 'readonly',
        console: 'readonly',
        document: 'readonly',
        fetch: 'readonly',
        localStorage: 'readonly',
        matchMedia: 'readonly',
        performance: 'readonly',
        process: 'readonly',
        setTimeout: 'readonly',
        setInterval: 'readonly',
        clearInterval: 'readonly',
        window: 'readonly',
      },
    },
  },
);
