// Reads the types of creates back from generated text, with the compiler.
import ts from 'typescript'

const FILE = '/models.ts'

/** A program of the generated text and of one statement in each line. */
function createProgram(generated: string, statements: readonly string[]): ts.Program {
  const options: ts.CompilerOptions = {
    ...{ strict: true, noEmit: true, noLib: false, types: [], lib: ['lib.es2022.d.ts'] },
    target: ts.ScriptTarget.ES2022,
  }
  const host = ts.createCompilerHost(options)
  const text = `${generated}\n${statements.join('\n')}\n`
  const getSourceFile = host.getSourceFile.bind(host)
  host.getSourceFile = (name, ...rest) =>
    name === FILE
      ? ts.createSourceFile(FILE, text, ts.ScriptTarget.ES2022, true)
      : getSourceFile(name, ...rest)
  return ts.createProgram([FILE], options, host)
}

function getSource(program: ts.Program): ts.SourceFile {
  const source = program.getSourceFile(FILE)
  if (!source) throw new Error('the program has no source')
  return source
}

/** The fields that a create of each model needs, by the types alone. Models that nobody can create are left out. */
export function listNeededFields(generated: string): ReadonlyMap<string, readonly string[]> {
  const program = createProgram(generated, [])
  const checker = program.getTypeChecker()
  const source = getSource(program)
  const models = source.statements.find(
    (statement): statement is ts.InterfaceDeclaration =>
      ts.isInterfaceDeclaration(statement) && statement.name.text === 'Models',
  )
  if (!models) throw new Error('the text has no interface Models')
  const typeOf = (type: ts.Type, name: string) => {
    const symbol = type.getProperty(name)
    if (!symbol) throw new Error(`${name} is missing`)
    return checker.getTypeOfSymbolAtLocation(symbol, models)
  }
  const needed = checker
    .getTypeAtLocation(models)
    .getProperties()
    .map((model): [string, readonly string[] | undefined] => {
      const create = typeOf(checker.getTypeOfSymbolAtLocation(model, models), 'create')
      if ((create.flags & ts.TypeFlags.Never) !== 0) return [model.name, undefined]
      const required = create.getProperties().filter(({ flags }) => (flags & ts.SymbolFlags.Optional) === 0)
      return [model.name, required.map(({ name }) => name)]
    })
  return new Map(needed.filter((entry): entry is [string, readonly string[]] => entry[1] !== undefined))
}

/** A value for a create of a model. */
export interface CreateValue {
  readonly model: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Tells for each value whether it compiles as the data of a create. */
export function compileCreates(generated: string, values: readonly CreateValue[]): readonly boolean[] {
  const statements = values.map(
    ({ model, data }, index) =>
      `export const value${index}: Models[${JSON.stringify(model)}]['create'] = ${JSON.stringify(data)}`,
  )
  const program = createProgram(generated, statements)
  const source = getSource(program)
  const first = source.text.split('\n').length - 1 - statements.length
  const wrong = new Set(
    program
      .getSemanticDiagnostics(source)
      .map(({ start = 0 }) => source.getLineAndCharacterOfPosition(start).line),
  )
  const elsewhere = [...wrong].filter((line) => line < first)
  if (elsewhere.length > 0)
    throw new Error(`the generated text has errors in the lines ${elsewhere.join(', ')}`)
  return values.map((_, index) => !wrong.has(first + index))
}
