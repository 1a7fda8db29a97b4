// Files in a folder of models that hold no model, with the reason for each.
import {
  formatDiagnostics,
  summarizeDiagnostics,
  type Diagnostic,
  type DiagnosticTexts,
} from '../../formats/domain-xml/report.js'

const SKIP_TEXTS = {
  folder: ['folder is not searched', 'folders are not searched'],
  script: [
    'script is not run: it imports none of defineModel, extendModel and defineHooks from "verso-records"',
    'scripts are not run: they import none of defineModel, extendModel and defineHooks from "verso-records"',
  ],
  'no-json': ['file is not JSON', 'files are not JSON'],
  json: ['JSON file has no "name" and "fields"', 'JSON files have no "name" and "fields"'],
  xml: ['XML file is not domain XML', 'XML files are not domain XML'],
  types: ['file contains only types', 'files contain only types'],
  large: ['file has more than 8 MiB', 'files have more than 8 MiB'],
  link: ['symbolic link has no target', 'symbolic links have no target'],
} as const satisfies Record<string, DiagnosticTexts>

/** Kinds that may hide a model by mistake. A server logs them when it starts. */
const WARNED_KINDS: readonly string[] = ['script', 'no-json', 'large', 'link'] satisfies SkipKind[]

export type SkipKind = keyof typeof SKIP_TEXTS
export type SkippedFile = Diagnostic<SkipKind>

/** Formats one log line for each kind that may hide a model. */
export function summarizeSkipWarnings(skipped: readonly SkippedFile[]): string[] {
  return summarizeSkipped(skipped.filter(({ kind }) => WARNED_KINDS.includes(kind)))
}

/** Formats one line for each kind. */
export function summarizeSkipped(skipped: readonly SkippedFile[]): string[] {
  return summarizeDiagnostics(SKIP_TEXTS, skipped).map((line) => `skipped: ${line}`)
}

export function formatSkipped(skipped: readonly SkippedFile[]): string {
  return skipped.length === 0 ? '' : `\nSkipped:\n\n${formatDiagnostics(SKIP_TEXTS, skipped)}`
}
