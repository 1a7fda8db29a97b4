import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { describeStep, type SchemaPlan } from '../../store/schema/plan.js'
import { applySchema, previewSchema } from '../../store/schema/apply.js'
import { loadCatalog } from '../models/models.js'
import { redactDatabaseUrl, requireDatabaseFile, useDatabase } from '../open.js'
import { addJsonFlag, printJson, type JsonFlag } from '../terminal/listing.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'

const EXAMPLES = `
The service migrates the tables to the models when it starts, if no data is lost.
This command shows the migration plan, and applies it with --apply. Only this command drops data, and only what --drop names.

Examples:
  $ verso schema --models models
  $ verso schema --models models --apply --drop todo.Task.pin`

interface SchemaFlags extends Flags {
  readonly apply?: boolean
  readonly drop?: readonly string[]
}

export function addSchemaCommand(program: Command): void {
  const command = program.command('schema').description('show or apply the pending migration')
  addJsonFlag(addSettingFlags(command, 'schema'))
    .option('--apply', 'apply the migration')
    .option('--drop <name...>', 'delete the data of this model, or of this field (model.field)')
    .addHelpText('after', EXAMPLES)
    .action(async ({ json = false, ...flags }: SchemaFlags & JsonFlag) => {
      const { db, models } = readSettings('schema', flags, process.env)
      const catalog = await loadCatalog(models ?? '')
      // A preview must not create the file that a mistyped path names.
      if (!flags.apply) requireDatabaseFile(db)
      const drops = flags.drop ?? []
      const run = flags.apply ? applySchema : previewSchema
      const plan = await useDatabase(db, async (database) => run(database, catalog, drops))
      const database = redactDatabaseUrl(db)
      if (json) printJson({ database, applied: flags.apply ?? false, ...toJsonPlan(plan) })
      else process.stdout.write(formatSchemaPlan(plan, database, flags))
      if (plan.errors.length > 0)
        throw new ConfigError(
          'The database schema cannot be changed to these models without losing data',
          plan.errors,
        )
    })
}

function toJsonPlan({ steps, notes, errors }: SchemaPlan): object {
  return {
    steps: steps.map((step) => ({ kind: step.kind, model: step.model, description: describeStep(step) })),
    notes,
    errors,
  }
}

/** Formats the plan as `verso schema` prints it. */
export function formatSchemaPlan(
  { steps, notes, errors }: Pick<SchemaPlan, 'steps' | 'notes' | 'errors'>,
  db: string,
  { apply: isDone = false, drop }: SchemaFlags,
): string {
  const lines = [...steps.map((step) => `  ${describeStep(step)}`), ...notes.map((note) => `  note: ${note}`)]
  const heading =
    steps.length > 0
      ? `${isDone ? 'Applied to' : 'Planned for'} ${db}:`
      : errors.length > 0
        ? `The tables of ${db} do not match the models.`
        : `No changes are needed in ${db}.`
  const isPending = steps.length > 0 && !isDone && errors.length === 0
  const hint = drop
    ? 'Nothing was changed. To apply the plan, run this command again with --apply.'
    : 'The service applies this plan when it starts. To apply it now, run this command again with --apply.'
  return [heading, ...lines, ...(isPending ? [hint] : []), ''].join('\n')
}
