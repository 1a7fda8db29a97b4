import js from '@eslint/js'
import { defineConfig, globalIgnores } from 'eslint/config'
import tseslint from 'typescript-eslint'

const nodeGlobals = Object.fromEntries(
  Object.getOwnPropertyNames(globalThis).map((name) => [name, 'readonly']),
)

const noEnum = { selector: 'TSEnumDeclaration', message: 'Use a union of strings.' }

const noDefaultExport = [
  'ExportDefaultDeclaration',
  'ExportNamedDeclaration > ExportSpecifier[exported.name="default"]',
].map((selector) => ({ selector, message: 'Export it by name.' }))

// The rule cannot see types, so it goes by the words: a map's get() stays allowed.
const noLazyRead = [
  'MemberExpression[property.name="iterate"]',
  'CallExpression[callee.property.name="get"][callee.object.callee.property.name="prepare"]',
  'CallExpression[callee.property.name="get"][callee.object.name=/statement|stmt|prepared/i]',
].map((selector) => ({
  selector,
  message: 'Use all(): get() on a writing statement has reported successes that were never stored.',
}))

export default defineConfig(
  globalIgnores(['dist', 'data', 'bench/results', 'bench/.peers']),
  js.configs.recommended,
  {
    files: ['**/*.js', '**/*.mjs'],
    languageOptions: { globals: nodeGlobals },
  },
  {
    files: ['src/http/docs/page/*.mjs'],
    languageOptions: {
      globals: {
        document: 'readonly',
        location: 'readonly',
        navigator: 'readonly',
        onhashchange: 'writable',
      },
    },
  },
  {
    files: ['**/*.ts', '**/*.tsx', '**/*.mts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      // Exported functions that touch the database are async even when they await nothing: see STYLE.md.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/unified-signatures': 'off',
      // There are no enums, and this rule takes longest.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      'no-restricted-syntax': ['error', noEnum, ...noDefaultExport],
    },
  },
  {
    files: ['**/*.config.ts'],
    rules: { 'no-restricted-syntax': ['error', noEnum] },
  },
  {
    files: ['src/store/sqlite/sqlite.ts'],
    rules: { 'no-restricted-syntax': ['error', noEnum, ...noDefaultExport, ...noLazyRead] },
  },
  {
    files: ['test/**/*.ts'],
    // expect.any() and its like are typed as any.
    rules: { '@typescript-eslint/no-unsafe-assignment': 'off' },
  },
)
