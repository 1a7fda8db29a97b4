import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { describeStep, type SchemaPlan } from '../../store/schema/plan.js'
import { applySchema, previewSchema } from '../../store/schema/apply.js'
import { loadCatalog } from '../models/models.js'
import { redactDatabaseUrl, useDatabase } from '../open.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'

const EXAMPLES = `
Tables follow the models by themselves whenever the service starts, as long as nothing is lost.
This command shows what would be done, and does what loses data, if you name it.

Examples:
  $ verso schema --models models
  $ verso schema --models models --apply --drop todo.Task.pin`

interface SchemaFlags extends Flags {
  readonly apply?: boolean
  readonly drop?: readonly string[]
}

export function addSchemaCommand(program: Command): void {
  const command = program
    .command('schema')
    .description('show how the tables would follow the models, and make them')
  addSettingFlags(command, 'schema')
    .option('--apply', 'do it')
    .option('--drop <name...>', 'a model, or model.field, whose data may be lost')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: SchemaFlags) => {
      const { db, models } = readSettings('schema', flags, process.env)
      const catalog = await loadCatalog(models ?? '')
      const drops = flags.drop ?? []
      const run = flags.apply ? applySchema : previewSchema
      const plan = await useDatabase(db, async (database) => run(database, catalog, drops))
      process.stdout.write(formatSchemaPlan(plan, redactDatabaseUrl(db), flags))
      if (plan.errors.length > 0)
        throw new ConfigError('The tables cannot follow the models without losing data', plan.errors)
    })
}

function formatSchemaPlan(
  { steps, notes, errors }: SchemaPlan,
  db: string,
  { apply: isDone = false, drop }: SchemaFlags,
): string {
  const lines = [...steps.map((step) => `  ${describeStep(step)}`), ...notes.map((note) => `  note: ${note}`)]
  const heading =
    steps.length > 0 ? `${isDone ? 'Done in' : 'To be done in'} ${db}:` : `Nothing to do in ${db}.`
  const isPending = steps.length > 0 && !isDone && errors.length === 0
  const hint = drop
    ? 'Nothing was done yet: run the same with --apply.'
    : 'The service does this when it starts; to do it now, run the same with --apply.'
  return [heading, ...lines, ...(isPending ? [hint] : []), ''].join('\n')
}
