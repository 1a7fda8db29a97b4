import { Option, type Command } from 'commander'
import { formatReport, summarizeReport } from '../../formats/domain-xml/report.js'
import { MODEL_FORMATS, formatModel, type ModelFormat } from '../../formats/model-file.js'
import { pluralize } from '../../model/values/plural.js'
import { writeModelFiles } from '../models/model-writer.js'
import { loadCatalogSources, loadDomainModels, createCatalog, type LoadedModels } from '../models/models.js'
import { formatSkipped } from '../models/skipped-files.js'
import { addJsonFlag, printJson, type JsonFlag } from '../terminal/listing.js'
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
    .description('report what is not supported in model files; convert domain XML to TypeScript or JSON')
    .addHelpText('after', EXAMPLES)
  const command = models
    .command('report')
    .description('list unsupported parts of domain XML, and skipped files of the folder')
  addJsonFlag(addSettingFlags(command, 'models')).action(
    async ({ json = false, ...flags }: Flags & JsonFlag) => {
      const { models: modelsPath } = readSettings('models', flags, process.env)
      await printModelsReport(modelsPath ?? '', json)
    },
  )
  models
    .command('convert')
    .description('convert domain XML to TypeScript or JSON, one file for each model')
    .argument('<path>', 'file or folder with the domain XML')
    .addOption(new Option('--to <format>', 'output format').choices([...MODEL_FORMATS]).makeOptionMandatory())
    .requiredOption('--out <folder>', 'output folder; existing files are never overwritten')
    .action(async (sourcePath: string, { to, out }: ModelsConvertFlags) => {
      process.stdout.write(await convertModels(sourcePath, to, out))
    })
}

async function printModelsReport(modelsPath: string, json: boolean): Promise<void> {
  const loaded = await loadCatalogSources(modelsPath)
  const { sources, report, skipped } = loaded
  const printReport = (models: readonly string[], text: string) => {
    if (json) printJson({ models, unsupported: report, skipped })
    else process.stdout.write(text)
  }
  try {
    const { models } = createCatalog(loaded)
    printReport(
      models.map(({ name }) => name),
      `${describeModelsReport(loaded)}${formatSkipped(skipped)}`,
    )
  } catch (error) {
    // If no model was found, the list of skipped files explains why.
    if (sources.length === 0) printReport([], formatSkipped(skipped).trimStart())
    throw error
  }
}

function describeModelsReport({ sources, report }: LoadedModels): string {
  const models = pluralize(sources.length, 'model')
  if (report.length === 0) return `${models}, fully supported.\n`
  return `${models}. Not supported:\n\n${formatReport(report)}`
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
    `wrote ${pluralize(files.length, 'model')} to ${folder}`,
    ...summarizeReport(report).map((line) => `  ${line}`),
    ...extensionFiles.map((file) => `copy ${file} to the same folder: it extends the converted models`),
  ]
  return `${lines.join('\n')}\n`
}
