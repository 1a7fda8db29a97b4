// Mutants of an embedded service.
import type { Verso, VersoRecords } from 'verso-records'

/** Gives every user all permissions. */
export function ignoreUser(verso: Verso): Verso['records'] {
  return () => verso.system
}

/** Forgets the author of changes with all permissions. */
export function forgetAuthor(records: VersoRecords, verso: Verso): VersoRecords {
  return { ...records, asSystem: () => verso.system }
}

/** Returns the service itself for tests. */
export function shareDatabase(verso: Verso): Pick<Verso, 'test'> {
  const unused = { user: { id: 1, version: 0, username: '', name: null }, password: '', my: verso.system }
  const fetch = async () => Promise.resolve(new Response())
  return {
    test: async () => Promise.resolve(Object.assign(Object.create(verso) as Verso, { ...unused, fetch })),
  }
}

/** Splices the values of a filter into its text. */
export function spliceFilter(records: VersoRecords, model: string) {
  return async (filter: Readonly<Record<string, string>>) => {
    const terms = Object.entries(filter).map(([name, value]) => `self.${name} = '${value}'`)
    return records.find(model, { filter: terms.join(' and ') })
  }
}
