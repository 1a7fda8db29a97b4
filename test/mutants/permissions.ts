// Mutants of permissions. Each breaks one guarantee, and the matrix must catch it.
import { Permissions, type Grant } from '../../src/model/access/permissions.js'
import type { Criteria } from '../../src/model/query/criteria.js'
import type { Field } from '../../src/model/values/field.js'
import type { Model } from '../../src/model/definition/model.js'
import type { UserIdentity } from '../../src/service/context/identity.js'
import type { App } from '../../src/service/context/app.js'
import type { Principal } from '../../src/service/context/principal.js'
import type { Authorizer } from '../../src/service/context/authorizer.js'
import type { Database, Row, SqlValue, Transaction } from '../../src/store/engine/database.js'
import { PROJECT } from '../permissions/project-records.js'
import { searchingBy } from '../query-pool.js'

type Mutant = (app: App) => App
type Change = (grants: readonly Grant[], model: Model, permissions: Permissions) => readonly Grant[]

/** Hidden in some records: shown in all of them. */
class Unmasked extends Permissions {
  override mask(): undefined {
    return undefined
  }
}

/** Records that may not be seen are seen where others lead to them. */
class AllRelated extends Permissions {
  override visibleRecords(): undefined {
    return undefined
  }
}

/** What no grant shows can be named all the same. */
class AllNamed extends Permissions {
  override findReadable(model: Model, name: string): Field | undefined {
    return (
      super.findReadable(model, name) ?? (this.of(model).can('read') ? model.fields.get(name) : undefined)
    )
  }
  override mask(model: Model, field: Field): Criteria | undefined {
    return this.of(model).canRead(field.name) ? super.mask(model, field) : undefined
  }
}

type Kind = new (...given: ConstructorParameters<typeof Permissions>) => Permissions

function withPermissions(kind: Kind, change: Change = (grants) => grants): Mutant {
  const known = new WeakMap<Permissions, Permissions>()
  const changed = (permissions: Permissions): Permissions => {
    const mutant =
      known.get(permissions) ??
      new kind(permissions.catalog, (model) => change(permissions.of(model).grants, model, permissions))
    known.set(permissions, mutant)
    return mutant
  }
  return (app) => {
    const resolvePrincipal = async (identity: UserIdentity, epoch?: number): Promise<Principal> => {
      const principal = await app.authorizer.resolvePrincipal(identity, epoch)
      return { ...principal, permissions: principal.permissions && changed(principal.permissions) }
    }
    return { ...app, authorizer: { resolvePrincipal } as Authorizer }
  }
}

const granting = (change: Change) => withPermissions(Permissions, change)
const each = (change: (grant: Grant) => Grant) => granting((grants) => grants.map(change))

function withDatabase(change: (db: Database) => Partial<Database>): Mutant {
  return (app) => {
    const { db } = app
    const face: Database = {
      ...{
        dialect: db.dialect,
        reader: db.reader,
        queryPool: db.queryPool,
        blobs: db.blobs,
        commits: db.commits,
        writability: () => db.writability(),
      },
      transaction: (work, options) => db.transaction(work, options),
      close: () => db.close(),
    }
    return { ...app, db: { ...face, ...change(db) } }
  }
}

const searching = (change: (sql: string) => string) =>
  withDatabase((db) => ({
    queryPool: searchingBy(db.queryPool, (each) => ({ all: (sql, params) => each.all(change(sql), params) })),
  }))

/** The same question about the same record is answered as it was the first time in a transaction. */
function rememberingTests(tx: Transaction): Transaction {
  const answers = new Map<string, Promise<Row[]>>()
  return {
    all: async (sql: string, params?: readonly SqlValue[]) => {
      if (!sql.startsWith('select 1 as "one"')) return tx.all(sql, params)
      const key = `${sql} ${JSON.stringify(params)}`
      const answer = answers.get(key) ?? tx.all(sql, params)
      answers.set(key, answer)
      return answer
    },
    run: (sql, params) => tx.run(sql, params),
    insert: (sql, params) => tx.insert(sql, params),
  }
}

const without = (action: 'update' | 'remove' | 'create' | 'export') =>
  each((grant) => (grant.actions.has(action) ? { ...grant, where: undefined } : grant))

/** By what is wrong with each, and where that shows. */
export const READ_MUTANTS: Readonly<Record<string, Mutant>> = {
  'a field is shown in every record if in any': withPermissions(Unmasked),
  'neighbours are shown that may not be seen': withPermissions(AllRelated),
  'hidden fields can be named': withPermissions(AllNamed),
  'records are shown whatever the condition says': each((grant) => ({ ...grant, where: undefined })),
  'lists of fields are not looked at': each((grant) => ({ ...grant, readable: undefined })),
  'only the first grant counts': granting((grants) => grants.slice(0, 1)),
  'the star means those who decide, too': granting((grants, { name }, permissions) =>
    name.startsWith('verso.') && grants.length === 0
      ? permissions.of(permissions.catalog.get(PROJECT)).grants.filter(({ where }) => !where)
      : grants,
  ),
  'masks are forgotten in sorts': searching((sql) => {
    const [head = '', ...orders] = sql
      .replaceAll(/ then (\S+) end as "\$k/g, ' then $1 else $1 end as "$k')
      .split(' order by ')
    return [
      head,
      ...orders.map((order) => order.replaceAll(/ then (\S+) end/g, ' then $1 else $1 end')),
    ].join(' order by ')
  }),
  'the total counts what is not seen': searching((sql) =>
    sql.replace(/^(select \(select count\(\*\) from .*? where )/s, '$11 = 1 or '),
  ),
}

export const WRITE_MUTANTS: Readonly<Record<string, Mutant>> = {
  'a condition is looked at before an update only': withDatabase((db) => ({
    transaction: (work, options) => db.transaction((tx) => work(rememberingTests(tx)), options),
  })),
  'whoever may update any record may update all': without('update'),
  'whoever may remove any record may remove all': without('remove'),
  'whoever may create a record may create any': without('create'),
  'lists of fields that may be written are not looked at': each((grant) => ({
    ...grant,
    writable: undefined,
  })),
  'what is referred to need not be seen': withPermissions(AllRelated),
}
