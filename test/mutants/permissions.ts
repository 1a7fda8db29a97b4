// Mutants of permissions. Each breaks one guarantee, and the matrix must catch it.
import { Permissions, type Grant } from '../../src/model/access/permissions.js'
import type { Criteria } from '../../src/model/query/criteria.js'
import type { Field } from '../../src/model/values/field.js'
import type { Model } from '../../src/model/definition/model.js'
import type { UserIdentity } from '../../src/service/context/identity.js'
import type { App } from '../../src/service/context/app.js'
import type { Principal } from '../../src/service/context/principal.js'
import type { Authorizer } from '../../src/service/context/authorizer.js'
import { Batcher } from '../../src/store/engine/batcher.js'
import type { Database, Reader, Row, SqlValue, Transaction } from '../../src/store/engine/database.js'
import { PROJECT } from '../permissions/project-records.js'
import { searchingBy } from '../query-pool.js'
import { changedReader, queryPoolOf, unshared, unsharedTransaction } from '../queryables.js'
import { faceOf } from './records.js'

type Mutant = (app: App) => App
type Change = (grants: readonly Grant[], model: Model, permissions: Permissions) => readonly Grant[]

/** Shows a field in all records if it is visible in some. */
class Unmasked extends Permissions {
  override mask(): undefined {
    return undefined
  }
}

/** Shows hidden records as related records. */
class AllRelated extends Permissions {
  override visibleRecords(): undefined {
    return undefined
  }
}

/** Accepts hidden fields in searches. */
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
        gauges: () => db.gauges(),
        measure: () => db.measure(),
      },
      transaction: (work, options) => db.transaction(work, options),
      close: () => db.close(),
    }
    return { ...app, db: { ...face, ...change(db) } }
  }
}

const searching = (change: (sql: string) => string) =>
  withDatabase((db) => ({
    // Searches of small tables run on the reader.
    reader: changedReader(db.reader, (sql, params) => db.reader.all(change(sql), params)),
    queryPool: searchingBy(db.queryPool, (each) =>
      unshared({ all: (sql, params) => each.all(change(sql), params) }),
    ),
  }))

/** Repeats the first result of a check for the same record in a transaction. */
function rememberingTests(tx: Transaction): Transaction {
  const answers = new Map<string, Promise<Row[]>>()
  return unsharedTransaction({
    all: async (sql: string, params?: readonly SqlValue[]) => {
      if (!sql.startsWith('select 1 as "one"')) return tx.all(sql, params)
      const key = `${sql} ${JSON.stringify(params)}`
      const answer = answers.get(key) ?? tx.all(sql, params)
      answers.set(key, answer)
      return answer
    },
    run: (sql, params) => tx.run(sql, params),
    insert: (sql, params) => tx.insert(sql, params),
  })
}

const without = (action: 'update' | 'remove' | 'create' | 'export') =>
  each((grant) => (grant.actions.has(action) ? { ...grant, where: undefined } : grant))

/** Mutants that change what is read, by their defect. */
export const READ_MUTANTS: Readonly<Record<string, Mutant>> = {
  'a field that is visible in one record is visible in all': withPermissions(Unmasked),
  'hidden related records are shown': withPermissions(AllRelated),
  'hidden fields can be used in searches': withPermissions(AllNamed),
  'conditions of permissions are ignored': each((grant) => ({ ...grant, where: undefined })),
  'lists of readable fields are ignored': each((grant) => ({ ...grant, readable: undefined })),
  'only the first permission counts': granting((grants) => grants.slice(0, 1)),
  'the permission for all models covers system models, too': granting((grants, { name }, permissions) =>
    name.startsWith('verso.') && grants.length === 0
      ? permissions.of(permissions.catalog.get(PROJECT)).grants.filter(({ where }) => !where)
      : grants,
  ),
  'records are sorted by hidden values': searching((sql) => {
    const [head = '', ...orders] = sql
      .replaceAll(/ then (\S+) end as "\$k/g, ' then $1 else $1 end as "$k')
      .split(' order by ')
    return [
      head,
      ...orders.map((order) => order.replaceAll(/ then (\S+) end/g, ' then $1 else $1 end')),
    ].join(' order by ')
  }),
  'the total counts hidden records': searching((sql) =>
    sql.replace(/^(select \(select count\(\*\) from .*? where )/s, '$11 = 1 or '),
  ),
}

/** Mutants that change what is written, by their defect. */
export const WRITE_MUTANTS: Readonly<Record<string, Mutant>> = {
  'conditions are checked before an update, not after it': withDatabase((db) => ({
    transaction: (work, options) => db.transaction((tx) => work(rememberingTests(tx)), options),
  })),
  'the permission to update one record permits to update all': without('update'),
  'the permission to delete one record permits to delete all': without('remove'),
  'the permission to create one record permits to create any': without('create'),
  'lists of writable fields are ignored': each((grant) => ({
    ...grant,
    writable: undefined,
  })),
  'references to hidden records are accepted': withPermissions(AllRelated),
}

/** Takes every record for one that is seen whole. */
export class SeeingPermissions extends Permissions {
  override seesWhole(): boolean {
    return true
  }
}

/** Takes every field for a visible one in errors. */
export class NamingPermissions extends Permissions {
  override isVisible(): boolean {
    return true
  }
}

/** Batches reads of a record whatever their conditions are. */
export function sharingConditions(app: App): App {
  const { reader } = app.db
  const sharing: Reader = {
    all: (sql, params) => reader.all(sql, params),
    allShared: (sql, params) => reader.allShared(sql, params),
    batch: (work, input) => {
      const [key = ''] = work.key.split(' and ')
      return reader.batch(
        {
          key,
          runOne: (_, one) => work.runOne(sharing, one),
          runMany: (_, inputs) => work.runMany(sharing, inputs),
        },
        input,
      )
    },
    readInSnapshot: (work, otherwise) => reader.readInSnapshot(work, otherwise),
    withSnapshot: (work) => {
      reader.withSnapshot(work)
    },
  }
  return { ...app, db: { ...faceOf(app.db), reader: sharing } }
}

/** Runs searches that wait at the same time once, whatever their parameters are. */
export function sharingParameters(app: App): App {
  const { queryPool } = app.db
  const shared = new Batcher({ maxInputs: Infinity })
  const sharing = Object.assign(
    queryPoolOf(queryPool.all.bind(queryPool), queryPool.snapshot.bind(queryPool)),
    {
      allShared: (sql: string, params: readonly SqlValue[]) =>
        shared.batch(sql, params, async (inputs) => {
          const rows = await queryPool.all(sql, inputs[0])
          return inputs.map(() => rows)
        }),
    },
  )
  return { ...app, db: { ...faceOf(app.db), queryPool: sharing } }
}
