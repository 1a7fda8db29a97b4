import { Option, type Command } from 'commander'
import { formatReport, summarizeReport } from '../../formats/domain-xml/report.js'
import { MODEL_FORMATS, formatModel, type ModelFormat } from '../../formats/model-file.js'
import { writeModelFiles } from '../models/model-writer.js'
import { loadCatalogSources, loadDomainModels, createCatalog, type LoadedModels } from '../models/models.js'
import { formatSkipped } from '../models/skipped-files.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'

const EXAMPLES = `
Examples:
  $ verso models report --models domains
  $ verso models convert domains --to ts --out models`

interface ModelsConvertFlags {
  readonly to: ModelFormat
  readonly out: string
}

export function addModelsCommands(program: Command): void {
  const models = program
    .command('models')
    .description('domain XML: what is taken over, and the way to TypeScript or JSON')
    .addHelpText('after', EXAMPLES)
  const command = models
    .command('report')
    .description('list all that is not taken over: of domain XML, and of the folder')
  addSettingFlags(command, 'models').action(async (flags: Flags) => {
    const { models: modelsPath } = readSettings('models', flags, process.env)
    await printModelsReport(modelsPath ?? '')
  })
  models
    .command('convert')
    .description('write models of domain XML as TypeScript or JSON, a file for each')
    .argument('<place>', 'the file or folder with the XML')
    .addOption(new Option('--to <format>', 'what to write').choices([...MODEL_FORMATS]).makeOptionMandatory())
    .requiredOption('--out <folder>', 'where to write it; nothing is overwritten')
    .action(async (sourcePath: string, { to, out }: ModelsConvertFlags) => {
      process.stdout.write(await convertModels(sourcePath, to, out))
    })
}

async function printModelsReport(modelsPath: string): Promise<void> {
  const loaded = await loadCatalogSources(modelsPath)
  const { sources, skipped } = loaded
  // If no model was found, the list of skipped files explains why.
  if (sources.length === 0) process.stdout.write(formatSkipped(skipped).trimStart())
  createCatalog(loaded)
  process.stdout.write(`${describeModelsReport(loaded)}${formatSkipped(skipped)}`)
}

function describeModelsReport({ sources, report }: LoadedModels): string {
  const [models, say] =
    sources.length === 1 ? ['1 model', 'it says'] : [`${sources.length} models`, 'they say']
  if (report.length === 0) return `${models}; all that ${say} is taken over.\n`
  return `${models}. What ${say} that is not taken over:\n\n${formatReport(report)}`
}

/** Writes the converted models, or none if a file exists already; returns a message for the user. */
export async function convertModels(
  sourcePath: string,
  format: ModelFormat,
  folder: string,
): Promise<string> {
  const { models, report, extensionFiles } = await loadDomainModels(sourcePath)
  const files = models.map(({ definition }) => ({
    name: `${definition.name}.${format}`,
    text: formatModel(definition, format),
  }))
  writeModelFiles(files, folder, sourcePath)
  const lines = [
    `wrote ${files.length === 1 ? '1 model' : `${files.length} models`} to ${folder}`,
    ...summarizeReport(report).map((line) => `  ${line}`),
    ...extensionFiles.map((file) => `keep ${file} beside them: it extends what was written`),
  ]
  return `${lines.join('\n')}\n`
}
