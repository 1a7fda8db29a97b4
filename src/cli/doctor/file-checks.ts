// Checks of the disk, of file modes, and of the version of Node.
import { existsSync, readdirSync, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createDiagnosis, type Diagnosis } from '../../store/diagnosis/diagnosis.js'

const MIN_ROOM_BYTES = 64 * 1024 ** 2
const ENOUGH_ROOM_BYTES = 1024 ** 3
const OTHERS_ACCESS = 0o077
const OTHERS_WRITE = 0o022

/** The last day with security fixes of each major version: https://github.com/nodejs/release */
const NODE_ENDS: Readonly<Record<string, string>> = {
  '20': '2026-04-30',
  '22': '2027-04-30',
  '24': '2028-04-30',
}

export function diagnoseNode(version: string, today: Date): Diagnosis {
  const [major = ''] = version.split('.')
  const end = NODE_ENDS[major]
  if (end !== undefined && new Date(end) < today)
    return createDiagnosis(
      'node',
      'warning',
      `Node ${version} has had no security fixes since ${end}`,
      'Install Node 24, or another version that nodejs.org supports.',
    )
  return createDiagnosis('node', 'ok', `Node ${version}`)
}

/** `folder` may not exist yet; then its nearest parent that does counts. */
export function diagnoseRoom(check: string, folder: string): Diagnosis {
  let existing = path.resolve(folder)
  while (!existsSync(existing) && path.dirname(existing) !== existing) existing = path.dirname(existing)
  try {
    const { bavail, bsize } = statfsSync(existing)
    const room = bavail * bsize
    const message = `${(room / 1024 ** 2).toFixed(0)} MB are free in ${folder}`
    if (room >= ENOUGH_ROOM_BYTES) return createDiagnosis(check, 'ok', message)
    const level = room < MIN_ROOM_BYTES ? 'problem' : 'warning'
    return createDiagnosis(check, level, message, 'Free some space, or use a larger disk.')
  } catch (error) {
    return describeFileProblem(check, folder, error)
  }
}

export function diagnoseTemporaryRoom(): Diagnosis {
  return diagnoseRoom('temporary files', tmpdir())
}

/** Files with records or passwords: only their owner may read them. */
export function diagnosePrivateFiles(files: readonly string[]): Diagnosis[] {
  return diagnoseModes('file modes', files, OTHERS_ACCESS, (open) => ({
    level: 'problem',
    message: `other users can open ${open.join(', ')}`,
    advice: `Run: chmod go= ${open.join(' ')}`,
  }))
}

/** The models are programs: a user who can write them can do everything that the service can. */
export function diagnoseModelModes(models: string): Diagnosis[] {
  if (!existsSync(models)) return []
  const files = listModelPaths(models)
  return diagnoseModes('model modes', [models, ...files], OTHERS_WRITE, (open) => ({
    level: 'warning',
    message: `other users can change ${open.join(', ')}`,
    advice: `Run: chmod -R go-w ${models}`,
  }))
}

function listModelPaths(models: string): string[] {
  try {
    return statSync(models).isDirectory() ? readdirSync(models).map((name) => path.join(models, name)) : []
  } catch {
    // The check of the models says that they cannot be read.
    return []
  }
}

function diagnoseModes(
  check: string,
  files: readonly string[],
  bits: number,
  describe: (open: readonly string[]) => Omit<Diagnosis, 'check'>,
): Diagnosis[] {
  // Windows has no modes.
  if (process.platform === 'win32') return []
  try {
    const existing = files.filter((file) => existsSync(file))
    const open = existing.filter((file) => (statSync(file).mode & bits) !== 0)
    if (open.length > 0) return [{ check, ...describe(open) }]
    return existing.length === 0
      ? []
      : [createDiagnosis(check, 'ok', `other users have no access to ${existing[0] ?? ''}`)]
  } catch (error) {
    return [describeFileProblem(check, files[0] ?? '', error)]
  }
}

function describeFileProblem(check: string, file: string, error: unknown): Diagnosis {
  const reason = error instanceof Error ? error.message : String(error)
  return createDiagnosis(
    check,
    'problem',
    `${file} cannot be examined: ${reason}`,
    'Run this as the user of the service.',
  )
}
