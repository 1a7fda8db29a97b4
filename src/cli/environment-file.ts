// Reads settings from `.env` of the working directory.
import { readFileSync, statSync } from 'node:fs'
import { parseEnv } from 'node:util'

const FILE = '.env'

/**
 * Sets the variables of the file whose names begin with VERSO_. Variables that are set already win. Other names are left alone: the file
 * may belong to another program, too.
 */
export function loadEnvironmentFile(): void {
  // A folder of this name is a virtual environment of Python.
  if (!statSync(FILE, { throwIfNoEntry: false })?.isFile()) return
  for (const [name, value] of Object.entries(parseEnv(readEnvironmentFile())))
    if (name.startsWith('VERSO_')) process.env[name] ??= value
}

function readEnvironmentFile(): string {
  try {
    return readFileSync(FILE, 'utf8')
  } catch (error) {
    process.stderr.write(
      `The file ${FILE} cannot be read: ${error instanceof Error ? error.message : String(error)}\n`,
    )
    process.exit(1)
  }
}
