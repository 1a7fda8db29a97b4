// One permission of a role, as the form has it.
export const PERMISSION_ACTIONS = ['canRead', 'canCreate', 'canUpdate', 'canRemove', 'canExport'] as const

export type PermissionAction = (typeof PERMISSION_ACTIONS)[number]

export interface PermissionLine extends Readonly<Record<PermissionAction, boolean>> {
  /** Undefined for a line that is not saved yet. */
  readonly id?: number | undefined
  readonly version?: number | undefined
  readonly model: string
  readonly condition: string | null
  /** Null permits all fields. */
  readonly readable: readonly string[] | null
  readonly writable: readonly string[] | null
}

export function createLine(): PermissionLine {
  return {
    model: '',
    canRead: true,
    canCreate: false,
    canUpdate: false,
    canRemove: false,
    canExport: false,
    condition: null,
    readable: null,
    writable: null,
  }
}

export function readLines(value: unknown): readonly PermissionLine[] {
  if (!Array.isArray(value)) return []
  return (value as readonly Partial<PermissionLine>[]).map((line) => ({
    ...line,
    model: line.model ?? '',
    canRead: line.canRead === true,
    canCreate: line.canCreate === true,
    canUpdate: line.canUpdate === true,
    canRemove: line.canRemove === true,
    canExport: line.canExport === true,
    condition: line.condition ?? null,
    readable: line.readable ?? null,
    writable: line.writable ?? null,
  }))
}

/** What a permission can be for: a model, the models of a package, or all. Patterns never match the models of the service. */
export function listModelPatterns(names: readonly string[]): readonly string[] {
  const packages = names
    .filter((name) => !name.startsWith('verso.'))
    .map((name) => `${name.slice(0, name.lastIndexOf('.'))}.*`)
  return ['*', ...new Set(packages), ...names]
}
