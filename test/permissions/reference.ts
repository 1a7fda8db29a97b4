// A second implementation of permissions: plain JavaScript over plain records, written from docs/reference/permissions.md alone.
import {
  Oracle,
  type Cell,
  type Question,
  type Row,
  type Shapes,
  type Dataset,
} from '../properties/search-oracle.js'

export interface Look {
  readonly user: Row
  /** Any record, visible or not. */
  readonly at: (model: string, id: Cell | undefined) => Row | undefined
}

export interface Grant {
  readonly model: string
  /** Letters of the actions: r, c, u, d, x. */
  readonly can: string
  /** The stored condition, and the same as a predicate. */
  readonly text?: string
  readonly meets?: (row: Row, look: Look) => boolean
  readonly readable?: readonly string[]
  readonly writable?: readonly string[]
  /** A field of the condition that some models lack. */
  readonly lacks?: string
}

export type Status = 'ok' | 'bad-request' | 'forbidden' | 'unknown-model' | 'not-found' | 'invalid'
export type Shown = Record<string, unknown>

const ALWAYS = ['id', 'version']
/** Fields that only the service writes. */
const KEPT = ['createdOn', 'createdBy', 'updatedOn', 'updatedBy']
const USER = 'verso.auth.User'

/** Fills in the inverse relations. */
export function complete(shapes: Shapes, dataset: Dataset): Dataset {
  const entries = Object.entries(dataset).map(([model, rows]) => {
    const seenFromHere = Object.entries(shapes[model]?.fields ?? {}).flatMap(([name, shape]) =>
      typeof shape === 'object' && shape.through !== undefined ? [[name, shape] as const] : [],
    )
    const filled = rows.map((row) => {
      const cells = seenFromHere.map(([name, { kind, target, through = '' }]) => {
        const held = (dataset[target] ?? []).filter((other) => [other[through]].flat().includes(row.id))
        const ids = held.map(({ id }) => id)
        return [name, kind === 'many' ? ids : (ids[0] ?? null)] as const
      })
      return { ...row, ...Object.fromEntries(cells) }
    })
    return [model, filled] as const
  })
  return Object.fromEntries(entries)
}

/** One user with their grants in one dataset. */
export class Reference {
  readonly look: Look

  constructor(
    readonly shapes: Shapes,
    readonly dataset: Dataset,
    readonly user: Row,
    readonly grants: readonly Grant[] | 'everything',
  ) {
    this.look = { user, at: (model, id) => dataset[model]?.find((row) => row.id === id) }
  }

  /** The same user in another dataset. */
  inDataset(dataset: Dataset): Reference {
    return new Reference(this.shapes, dataset, this.user, this.grants)
  }

  grantsOn(model: string, action = ''): readonly Grant[] {
    if (this.grants === 'everything') return [{ model, can: 'rcudx' }]
    const [of = ''] = /^.*(?=\.)/.exec(model) ?? []
    const isMeant = (pattern: string) =>
      pattern === model || (!model.startsWith('verso.') && (pattern === '*' || pattern === `${of}.*`))
    const has = ({ lacks }: Grant) => lacks === undefined || this.shapes[model]?.fields[lacks] !== undefined
    return this.grants.filter((grant) => isMeant(grant.model) && has(grant) && grant.can.includes(action))
  }

  met(model: string, row: Row, action: string): readonly Grant[] {
    return this.grantsOn(model, action).filter(({ meets }) => meets?.(row, this.look) ?? true)
  }

  isKnown(model: string): boolean {
    return this.grantsOn(model).length > 0
  }

  sees(model: string, row: Row): boolean {
    return model === USER || this.met(model, row, 'r').length > 0
  }

  /** True if a question may name the field: some grant shows it in some record. */
  names(model: string, name: string): boolean {
    const shape = this.shapes[model]?.fields[name]
    if (shape === undefined) return false
    if (model === USER) return true
    if (typeof shape === 'object' && !this.leads(shape)) return false
    return this.grantsOn(model, 'r').some((grant) => isAmong(grant.readable, name))
  }

  /** True if a write may name the field: writable fields may be named, also if they are never read. */
  sends(model: string, name: string): boolean {
    const shape = this.shapes[model]?.fields[name]
    const isSeen = typeof shape !== 'object' || this.leads(shape)
    const writing = [...this.grantsOn(model, 'c'), ...this.grantsOn(model, 'u')]
    const isShown = this.grantsOn(model, 'r').some(({ readable }) => isAmong(readable, name))
    if (ALWAYS.includes(name) || (isShown && isSeen)) return true
    return !KEPT.includes(name) && isSeen && writing.some(({ writable }) => isAmong(writable, name))
  }

  namesPath(model: string, [name = '', ...rest]: readonly string[]): boolean {
    const shape = this.shapes[model]?.fields[name]
    if (!this.names(model, name)) return false
    return rest.length === 0 || (typeof shape === 'object' && this.namesPath(shape.target, rest))
  }

  shows(model: string, row: Row, name: string): boolean {
    if (model === USER) return ['id', 'version', 'name'].includes(name)
    return (
      this.names(model, name) && this.met(model, row, 'r').some(({ readable }) => isAmong(readable, name))
    )
  }

  /** True if a relation can show any record; an inverse relation needs read permission on its owning side. */
  leads({ target, through }: { readonly target: string; readonly through?: string }): boolean {
    if (target === USER) return true
    return this.grantsOn(target, 'r').some(
      ({ readable }) => through === undefined || isAmong(readable, through),
    )
  }

  /** The visible related records of a field. */
  near(target: string, cell: Cell | undefined, through?: string): readonly Row[] {
    const rows = [cell ?? []].flat().flatMap((id) => this.look.at(target, Number(id)) ?? [])
    const holds = (row: Row) =>
      through === undefined || this.met(target, row, 'r').some(({ readable }) => isAmong(readable, through))
    return rows.filter((row) => this.sees(target, row) && holds(row))
  }

  /** The dataset as this user sees it: hidden values are null, and hidden records absent. */
  seen(): Dataset {
    const models = Object.entries(this.dataset).map(([model, rows]) => {
      const fields = Object.entries(this.shapes[model]?.fields ?? {})
      const cellOf = (row: Row, name: string): Cell => {
        const shape = this.shapes[model]?.fields[name]
        if (typeof shape !== 'object') return this.shows(model, row, name) ? (row[name] ?? null) : null
        const ids = this.shows(model, row, name)
          ? this.near(shape.target, row[name], shape.through).map(({ id }) => id)
          : []
        return shape.kind === 'many' ? ids : (ids[0] ?? null)
      }
      const seen = rows.filter((row) => this.sees(model, row))
      return [model, seen.map((row) => Object.fromEntries(fields.map(([name]) => [name, cellOf(row, name)])))]
    })
    return Object.fromEntries(models) as Dataset
  }

  /** The ids that a search finds, in order, by the oracle over the visible dataset. */
  find(model: string, question: Question, sortBy: readonly string[], archived: boolean): number[] {
    return (this.#oracle ??= new Oracle(withoutThrough(this.shapes), this.seen())).find(
      ...([model, question, sortBy, archived] as const),
    )
  }
  #oracle: Oracle | undefined

  /** A record as answered. */
  show(model: string, row: Row, names: readonly string[]): Shown {
    const shown: Shown = { id: row.id, version: row['version'] }
    for (const name of names) {
      if (!this.shows(model, row, name)) continue
      const shape = this.shapes[model]?.fields[name]
      if (typeof shape !== 'object') shown[name] = row[name] ?? null
      else {
        const near = this.near(shape.target, row[name], shape.through).map((each) =>
          this.brief(shape.target, each),
        )
        if (shape.kind === 'many') shown[name] = near
        else if (near[0]) shown[name] = near[0]
        // A hidden related record is omitted, or null for an inverse relation.
        else if ((row[name] ?? null) === null || shape.through !== undefined) shown[name] = null
      }
    }
    return shown
  }

  brief(model: string, row: Row): Shown {
    const name = this.shapes[model]?.name ?? ''
    const known = this.shows(model, row, name) ? { [name]: row[name] ?? null } : {}
    return { id: row.id, $version: row['version'], ...known }
  }

  /** The value of a dotted path over to-one relations, or null if it ends early. */
  along(model: string, row: Row | undefined, [name = '', ...rest]: readonly string[]): unknown {
    if (!row || !this.shows(model, row, name)) return null
    const shape = this.shapes[model]?.fields[name]
    if (typeof shape !== 'object') return row[name] ?? null
    const near = this.near(shape.target, row[name], shape.through)
    if (rest.length > 0) return this.along(shape.target, near[0], rest)
    const briefs = near.map((each) => this.brief(shape.target, each))
    return shape.kind === 'many' ? briefs : (briefs[0] ?? null)
  }
}

export function isAmong(names: readonly string[] | undefined, name: string): boolean {
  return names === undefined || ALWAYS.includes(name) || names.includes(name)
}

function withoutThrough(shapes: Shapes): Shapes {
  const strip = (shape: Shapes[string]['fields'][string]) =>
    typeof shape === 'object' ? { kind: shape.kind, target: shape.target } : shape
  return Object.fromEntries(
    Object.entries(shapes).map(([model, { name, fields }]) => [
      model,
      { name, fields: Object.fromEntries(Object.entries(fields).map(([key, shape]) => [key, strip(shape)])) },
    ]),
  )
}
