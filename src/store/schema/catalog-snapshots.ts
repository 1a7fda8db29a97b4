// Compares the stored snapshots with a catalog, and builds the snapshots to store.
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Model } from '../../model/definition/model.js'
import { parseStoredJson } from '../engine/write-health.js'
import type { SchemaPlan } from './plan.js'
import { buildSnapshot, toSnapshotJson, type SchemaSnapshot } from './snapshot.js'

/** Finds the models whose tables match their declaration, with their stored snapshots. */
export function findUnchangedModels(
  catalog: Catalog,
  storedSnapshots: ReadonlyMap<string, string>,
): Map<string, string> {
  const declared = new Set(catalog.storedModels.map(({ name }) => name))
  const undeclared = [...storedSnapshots.keys()].filter((name) => !declared.has(name))
  // Commands that load no models do not know the fields that models add to users.
  const hasNoModels = catalog.models.length === 0
  const unchanged = catalog.storedModels.flatMap((model): [string, string][] => {
    const text = storedSnapshots.get(model.name)
    if (text === undefined) return []
    const before =
      hasNoModels || undeclared.length > 0 ? (parseStoredJson(text) as SchemaSnapshot) : undefined
    const neighbours = listInverseRelations(catalog, model, before, undeclared)
    const snapshot = buildSnapshot(model)
    const isAsDeclared = text === toSnapshotJson({ ...snapshot, neighbours })
    return isAsDeclared || (hasNoModels && before && includesSnapshot(before, snapshot))
      ? [[model.name, text]]
      : []
  })
  return new Map(unchanged)
}

/** Returns true if the stored snapshot contains everything that the declared one has. */
function includesSnapshot(stored: SchemaSnapshot, declared: SchemaSnapshot): boolean {
  const has = (all: object | undefined, some: object | undefined) =>
    Object.entries(some ?? {}).every(
      ([name, value]) =>
        JSON.stringify((all as Record<string, unknown> | undefined)?.[name]) === JSON.stringify(value),
    )
  return (
    has(stored.columns, declared.columns) &&
    has(stored.indexes, declared.indexes) &&
    has(stored.links, declared.links) &&
    JSON.stringify(stored.counted) === JSON.stringify(declared.counted)
  )
}

/** Finds the snapshots of stored models that the catalog does not declare and the plan does not drop. */
export function findUndeclaredSnapshots(
  catalog: Catalog,
  snapshots: ReadonlyMap<string, SchemaSnapshot>,
  { steps }: SchemaPlan,
): Map<string, SchemaSnapshot> {
  const declared = new Set(catalog.storedModels.map((model) => model.name))
  const dropped = new Set(steps.filter((step) => step.kind === 'drop-table').map((step) => step.model))
  return new Map([...snapshots].filter(([name]) => !declared.has(name) && !dropped.has(name)))
}

export function listInverseRelations(
  catalog: Catalog,
  model: Model,
  before: SchemaSnapshot | undefined,
  undeclared: readonly string[],
): string[] {
  return [...catalog.listDependents(model), ...listUndeclaredInverseRelations(before, undeclared)]
}

/** Lists the inverse relations that undeclared models contribute. They stay in the snapshot because their tables stay. */
function listUndeclaredInverseRelations(
  before: SchemaSnapshot | undefined,
  undeclared: readonly string[],
): string[] {
  const isStoredBy = (relation: string, model: string) => relation.includes(` by ${model}.`)
  return (before?.neighbours ?? []).filter((each) => undeclared.some((model) => isStoredBy(each, model)))
}

export function buildSnapshotJson(
  model: Model,
  plan: SchemaPlan,
  inverseRelations: readonly string[],
): string {
  const { columns, indexes, links, counted = [] } = buildSnapshot(model)
  return toSnapshotJson({
    columns: { ...plan.unusedColumns.get(model.name), ...columns },
    indexes,
    counted,
    links: { ...plan.unusedLinks.get(model.name), ...links },
    neighbours: inverseRelations,
  })
}
