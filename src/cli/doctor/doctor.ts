// `verso doctor`: checks an installation, and says what to do. It changes nothing, and works on a broken one.
import { statSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { createDiagnosis, type Diagnosis, type DiagnosisLevel } from '../../store/diagnosis/diagnosis.js'
import { followLinks } from '../../store/engine/private-files.js'
import { diagnoseDatabase, MEMORY_URL } from '../../store/open.js'
import { addSettingFlags, type Flags } from '../settings/read-settings.js'
import { SETTINGS } from '../settings/settings.js'
import { spellCommands } from '../terminal/invocation.js'
import { addJsonFlag, printJson, printLine, type JsonFlag } from '../terminal/listing.js'
import {
  diagnoseModelModes,
  diagnoseNode,
  diagnosePrivateFiles,
  diagnoseRoom,
  diagnoseTemporaryRoom,
} from './file-checks.js'
import { diagnoseProxy } from './proxy-checks.js'
import { diagnoseModels, diagnoseSettings } from './setting-checks.js'

const EXAMPLES = `
Examples:
  $ verso doctor --models models
  $ verso doctor --models models --url https://records.example.org
  $ VERSO_DOCTOR_PASSWORD=… verso doctor --models models --url https://records.example.org --user ada`

const EXIT_PROBLEMS = 1

interface DoctorFlags extends Flags {
  readonly url?: string
  readonly user?: string
}

export function addDoctorCommand(program: Command): void {
  const command = program
    .command('doctor')
    .description(
      'check database, clock, disk, file modes, settings and proxy, and say what to do; changes nothing',
    )
    .option('--url <url>', 'also call the running service at the address that users see')
    .option(
      '--user <name>',
      'with --url: log in with VERSO_DOCTOR_PASSWORD, to check client addresses and event streams',
    )
    .addHelpText('after', EXAMPLES)
  addJsonFlag(addSettingFlags(command, 'serve')).action(
    async ({ json = false, url, user, ...flags }: DoctorFlags & JsonFlag) => {
      const all: Diagnosis[] = []
      for await (const diagnosis of diagnoseAll(flags, { url, user })) {
        all.push(diagnosis)
        if (!json) printLine(formatDiagnosis(diagnosis))
      }
      const count = (level: DiagnosisLevel) => all.filter((each) => each.level === level).length
      const counts = { problems: count('problem'), warnings: count('warning') }
      if (json) printJson({ ...counts, checks: all })
      else printLine(`problems: ${counts.problems}, warnings: ${counts.warnings}`)
      if (counts.problems > 0) process.exitCode = EXIT_PROBLEMS
    },
  )
}

function formatDiagnosis({ check, level, message, advice }: Diagnosis): string {
  const line = `${level.padEnd(7)}  ${check}: ${message}`
  return advice === undefined ? line : `${line}\n         → ${spellCommands(advice)}`
}

interface ServiceAddress {
  readonly url: string | undefined
  readonly user: string | undefined
}

async function* diagnoseAll(flags: Flags, { url, user }: ServiceAddress): AsyncGenerator<Diagnosis> {
  yield diagnoseNode(process.versions.node, new Date())
  const { values, diagnoses } = diagnoseSettings(flags, process.env)
  yield* diagnoses
  // Wrong settings must not hide other problems.
  const text = (name: 'db' | 'models') =>
    String(flags[name] ?? process.env[`VERSO_${name.toUpperCase()}`] ?? '')
  const db = values?.db ?? (text('db') || SETTINGS.db.default)
  const models = values?.models ?? text('models')
  if (models !== '') {
    yield* diagnoseModelModes(models)
    yield await diagnoseModels(models)
  }
  yield* diagnosePrivateFiles(['.env'])
  if (values?.backupEvery !== undefined) {
    yield* diagnosePrivateFiles([values.backupFolder])
    yield diagnoseBackupFolder(values.backupFolder) ?? diagnoseRoom('backup disk', values.backupFolder)
  }
  const poolSize = values?.poolSize ?? Number(SETTINGS.poolSize.default)
  const diskReserveBytes = values?.diskReserve
  if (db !== MEMORY_URL) yield* guard('database', diagnoseDatabase(db, { poolSize, diskReserveBytes }))
  const file =
    db.startsWith('sqlite:') && db !== MEMORY_URL ? followLinks(db.slice('sqlite:'.length)) : undefined
  if (file !== undefined) {
    yield* diagnosePrivateFiles([file, `${file}-wal`, `${file}-shm`, `${file}.files`])
    yield diagnoseRoom('disk', path.dirname(path.resolve(file)))
  }
  yield diagnoseTemporaryRoom()
  if (url !== undefined) yield* guard('proxy', diagnoseProxy({ url, user, bodyLimit: values?.bodyLimit }))
}

/** An error that a check does not expect must not end the checks after it. */
async function* guard(check: string, diagnoses: AsyncGenerator<Diagnosis>): AsyncGenerator<Diagnosis> {
  try {
    yield* diagnoses
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    yield createDiagnosis(
      check,
      'problem',
      `the checks ended with an error: ${reason}`,
      'See the log of the service.',
    )
  }
}

/** The service creates a missing folder. */
function diagnoseBackupFolder(folder: string): Diagnosis | undefined {
  const stat = statSync(folder, { throwIfNoEntry: false })
  if (!stat || stat.isDirectory()) return undefined
  const advice = 'Name a folder in --backup-folder.'
  return createDiagnosis('backup disk', 'problem', `${folder} is a file, not a folder`, advice)
}
