// Describes the errors of commands for the user.
import { ConfigError, VersoError } from '../../errors.js'
import { describeFileError } from '../file-error.js'

const STACK_LEVELS: readonly string[] = ['debug', 'trace']

/** Describes the error in one sentence. The stack of an unexpected error is printed at log level debug. */
export function describeFailure(error: unknown): string {
  if (error instanceof ConfigError || error instanceof VersoError) return error.message
  const fileError = describeFileError(error)
  if (fileError !== undefined) return `The command failed:\n  - ${fileError}`
  if (!(error instanceof Error)) return `The command failed: ${String(error)}`
  if (STACK_LEVELS.includes(process.env['VERSO_LOG_LEVEL'] ?? '')) return error.stack ?? error.message
  return `The command failed: ${error.message}. To see where, set VERSO_LOG_LEVEL=debug`
}
