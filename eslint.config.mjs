/** Type-checked linting for all TypeScript, including the console's browser code. */
import tseslint from 'typescript-eslint';

import { literalTexts } from './ts/console/literal-texts.mjs';

export default tseslint.config(
  { ignores: ['build/', 'target/', 'native/', '**/dist/', '**/*.generated.*', 'test/bench/'] },
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // A switch over a union must list every member, so that none can be forgotten.
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      // Numbers and booleans may be interpolated into messages.
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      // `exactOptionalPropertyTypes` requires spreads of `x ?? {}`, and empty functions are used as
      // no-op callbacks.
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
    // The console's strings belong in `texts.ts`, so only that file may contain literals.
    files: ['ts/console/src/**/*.ts', 'ts/console/src/**/*.tsx'],
    ignores: ['ts/console/src/texts.ts'],
    plugins: { console: { rules: { 'literal-texts': literalTexts } } },
    rules: { 'console/literal-texts': 'error' },
  },
  {
    files: ['test/**/*.ts', 'ts/console/test/**/*.ts'],
    rules: {
      // Tests may be longer than other functions, because they are read from top to bottom.
      'max-lines-per-function': ['error', { max: 120, IIFEs: true }],
      // ava's test declarations return promises that need not be awaited.
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
