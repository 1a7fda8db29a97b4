// A Search with everything that follows from it. Clients repeat their searches, so the latest plans are cached.
import type { Model } from '../../model/definition/model.js'
import type { FindQuery, Search } from '../../model/query/search.js'
import { countRelations } from '../../model/query/selection.js'
import type { Visibility } from '../../model/query/visibility.js'
import type { SqlFragment } from '../sql/parameters.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'
import { isBoundedSearch } from './known-total.js'
import { resolveSelect } from './pages.js'
import { collectSearchedModels } from './search-cost.js'
import { compileSmallPage } from './small-page.js'

/** The parts that many searches never need are computed on first use. */
export class SearchPlan {
  readonly select: Select
  /** True if the selection reads a bounded number of related records for each record of the page. */
  readonly hasBoundedSelection: boolean
  /** True if the search reads few more rows than it returns. */
  readonly isBounded: boolean
  #searchedModels: ReadonlySet<Model> | undefined
  #smallPage: { readonly sql: SqlFragment | undefined } | undefined

  /** The search includes the Criteria of the permissions. `list` are the columns of a search without a selection. */
  constructor(
    readonly table: Table,
    readonly search: Search,
    list: Select,
  ) {
    const { selection } = search
    this.select = resolveSelect(table, search, list)
    this.hasBoundedSelection = selection ? countRelations(selection) === 0 : !list.hasRelatedConditions
    this.isBounded = this.hasBoundedSelection && isBoundedSearch(table, search)
  }

  get searchedModels(): ReadonlySet<Model> {
    return (this.#searchedModels ??= collectSearchedModels(this.table.model, this.search))
  }

  /** The statement of `findSmallPage`; undefined if the search has none. */
  get smallPage(): SqlFragment | undefined {
    this.#smallPage ??= { sql: compileSmallPage(this.table, this.select, this.search) }
    return this.#smallPage.sql
  }
}

export const MAX_CACHED_PLANS = 500
/** Longer queries are rarely repeated and would take too much memory. */
const MAX_KEY_LENGTH = 1_000

/** Equal keys mean equal plans. */
export interface PlanKey {
  readonly visibility: Visibility
  readonly table: Table
  readonly query: FindQuery
  readonly maxPageSize: number
}

export class SearchPlans {
  readonly #plans = new Map<string, SearchPlan>()
  /** Gives each Visibility a number for the key. Changed permissions are a new object. */
  readonly #visibilities = new WeakMap<Visibility, number>()
  #lastVisibility = 0

  find(key: PlanKey): SearchPlan | undefined {
    const text = this.#toText(key)
    const plan = text === undefined ? undefined : this.#plans.get(text)
    return plan?.table === key.table ? plan : undefined
  }

  add(key: PlanKey, plan: SearchPlan): SearchPlan {
    const text = this.#toText(key)
    if (text === undefined) return plan
    const [oldest] = this.#plans.size >= MAX_CACHED_PLANS ? this.#plans.keys() : []
    if (oldest !== undefined) this.#plans.delete(oldest)
    this.#plans.set(text, plan)
    return plan
  }

  /** Undefined for a query whose plan is not cached: it is long, has values that are not strings, or has a cursor, which clients do not repeat. */
  #toText({ visibility, table, query, maxPageSize }: PlanKey): string | undefined {
    let text = `${this.#getNumber(visibility)} ${maxPageSize} ${table.model.name}`
    const values = query as Readonly<Record<string, unknown>>
    for (const name of Object.keys(values)) {
      const value = values[name]
      if (typeof value !== 'string' || name === 'after') return undefined
      // With the lengths, different queries have different keys.
      text += ` ${name.length} ${name} ${value.length} ${value}`
      if (text.length > MAX_KEY_LENGTH) return undefined
    }
    return text
  }

  #getNumber(visibility: Visibility): number {
    const known = this.#visibilities.get(visibility)
    if (known !== undefined) return known
    this.#visibilities.set(visibility, ++this.#lastVisibility)
    return this.#lastVisibility
  }
}
