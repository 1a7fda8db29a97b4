// Random writes for two services that must answer them alike. The ids of each model begin at another million, so that an id in any text tells
// its model; ids are compared by the order in which the records were created.
import fc from 'fast-check'
import { VersoError } from '../../src/errors.js'
import { buildGrant } from '../../src/model/access/permission-record.js'
import { Permissions, type PermissionAction } from '../../src/model/access/permissions.js'
import type { ModelSource } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { Model } from '../../src/model/definition/model.js'
import type { App, ModelHooks } from '../../src/service/context/app.js'
import { createContext, type Context } from '../../src/service/context/context.js'
import { composeHooks } from '../../src/service/context/hooks.js'
import type { Principal } from '../../src/service/context/principal.js'
import { advanceIds } from '../../src/store/records/bulk.js'
import type { MassUpdate, SaveOptions, UpdateOptions } from '../../src/wire.js'
import { changesSince } from '../log.js'
import { identityIn, startService, type Engine, type Service } from '../targets.js'

const common = { title: { type: 'string', length: 20 }, amount: { type: 'integer' } } as const

const definitions = [
  defineModel({
    name: 'w.Plain',
    fields: {
      ...common,
      double: { type: 'integer', computed: ({ amount }) => (amount === null ? null : Number(amount) * 2) },
      extra: { type: 'json' },
      day: { type: 'date', default: '2001-02-03' },
      rate: { type: 'decimal', precision: 5, scale: 2 },
      done: { type: 'boolean' },
    },
    archived: true,
    nameField: 'title',
    mergeGroups: [['day', 'rate']],
  }),
  defineModel({
    name: 'w.Coded',
    fields: {
      ...common,
      code: { type: 'string', unique: true },
      label: { type: 'string', length: 80, computed: '{title}-{code}', unique: true },
      set: { type: 'string' },
    },
    unique: [['set', 'amount']],
  }),
  defineModel({
    name: 'w.Numbered',
    fields: { ...common, number: { type: 'string', sequence: { prefix: 'N', padding: 3 } } },
  }),
  defineModel({ name: 'w.Secret', fields: { ...common, pin: { type: 'string', secret: true } } }),
  defineModel({
    name: 'w.Order',
    fields: {
      ...common,
      customer: { type: 'many-to-one', target: 'w.Customer' },
      parent: { type: 'many-to-one', target: 'w.Order' },
      lines: {
        ...{ type: 'one-to-many', target: 'w.Line', mappedBy: 'order', owned: true },
        orderBy: ['-amount'],
      },
      tags: { type: 'many-to-many', target: 'w.Tag' },
    },
    nameField: 'title',
  }),
  defineModel({
    name: 'w.Line',
    fields: {
      ...common,
      order: { type: 'many-to-one', target: 'w.Order' },
      product: { type: 'many-to-one', target: 'w.Plain' },
      kind: { type: 'string', computed: '{title}' },
    },
  }),
  defineModel({
    name: 'w.Customer',
    fields: {
      ...common,
      code: { type: 'string', unique: true },
      sites: { type: 'one-to-many', target: 'w.Site', mappedBy: 'customer', owned: true },
      orders: { type: 'one-to-many', target: 'w.Order', mappedBy: 'customer' },
    },
    nameField: 'title',
  }),
  defineModel({
    name: 'w.Site',
    fields: { ...common, customer: { type: 'many-to-one', target: 'w.Customer' } },
  }),
  defineModel({ name: 'w.Tag', fields: { ...common }, nameField: 'title' }),
  defineModel({
    name: 'w.Badge',
    fields: { ...common, holder: { type: 'one-to-one', target: 'w.Customer' } },
  }),
  defineModel({
    name: 'w.Filed',
    fields: { ...common, scan: { type: 'binary' }, tag: { type: 'many-to-one', target: 'w.Tag' } },
  }),
  defineModel({
    name: 'w.Hooked',
    fields: { ...common, note: { type: 'string' }, tag: { type: 'many-to-one', target: 'w.Tag' } },
  }),
]

export const models: readonly ModelSource[] = definitions.map((definition) => ({
  file: 'test/properties/one-writer-fixture.ts',
  definition,
}))

const MODELS = definitions.map(({ name }) => name)
const FIRST_ID = 1_000_000

/** The verbs that are compared. */
export interface WriteVerbs {
  readonly createRecord: (
    context: Context,
    model: Model,
    data: unknown,
    options?: SaveOptions,
  ) => Promise<unknown>
  readonly updateRecord: (
    context: Context,
    model: Model,
    input: { readonly id: number; readonly data: unknown },
    options?: UpdateOptions,
  ) => Promise<unknown>
  readonly saveRecords: (
    context: Context,
    model: Model,
    records: readonly unknown[],
    options?: SaveOptions,
  ) => Promise<unknown>
  readonly saveWithAddition: (
    context: Context,
    model: Model,
    addition: { readonly data: unknown; readonly prepareValues: () => Promise<Record<string, null>> },
    options: UpdateOptions,
  ) => Promise<unknown>
  readonly runBatch: (
    context: Context,
    requests: unknown,
    options?: { readonly merge?: 'fields' },
  ) => Promise<unknown>
  readonly updateMass: (context: Context, model: Model, request: MassUpdate) => Promise<unknown>
}

export interface Grantable {
  readonly model: string
  readonly actions: readonly PermissionAction[]
  readonly condition: string | null
  readonly readable: readonly string[] | null
  readonly writable: readonly string[] | null
}

/** Undefined for an administrator. */
type Grants = readonly Grantable[] | undefined

export type Step = { readonly grants: Grants; readonly model: string } & (
  | { readonly op: 'create'; readonly data: unknown; readonly options: SaveOptions }
  | { readonly op: 'update'; readonly target: Target; readonly data: object; readonly options: UpdateOptions }
  | { readonly op: 'save'; readonly records: readonly object[]; readonly options: SaveOptions }
  | { readonly op: 'batch'; readonly requests: readonly object[]; readonly merge: boolean }
  | { readonly op: 'mass'; readonly targets: readonly number[]; readonly data: object }
  | { readonly op: 'clear'; readonly target: Target }
)

/** A record that the case has created, and which version of it the request names. */
interface Target {
  readonly n: number
  readonly lag: number
}

const title = fc.constantFrom('a', 'b', 'c', 'é"\n', '', null)
const amount = fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constant(null))
const wrong = fc.constantFrom<unknown>(true, { id: 1 }, 'x'.repeat(30), [1])
const orWrong = (good: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 60, arbitrary: good }, { weight: 1, arbitrary: wrong })
const code = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f').map((letter) => ({ $code: letter }))
const n = fc.nat(7)

function related(model: string, depth: number): fc.Arbitrary<unknown> {
  const byId = fc.record({ $pick: fc.constant(model), n, as: fc.constantFrom('id', 'id', 'copy', 'edited') })
  if (depth === 0) return byId
  const nested = data(model, depth - 1)
  return fc.oneof(
    { weight: 4, arbitrary: byId },
    { weight: 2, arbitrary: nested },
    {
      weight: 3,
      arbitrary: fc.record({
        $pick: fc.constant(model),
        n,
        as: fc.constantFrom('update', 'update', 'update', 'stale'),
        data: nested,
      }),
    },
    { weight: 1, arbitrary: fc.constantFrom<unknown>(null, { id: 4242 }) },
  )
}

function list(model: string, depth: number): fc.Arbitrary<unknown> {
  return fc.array(related(model, depth), { maxLength: 3 })
}

function data(model: string, depth: number): fc.Arbitrary<object> {
  const relations: Readonly<Record<string, Readonly<Record<string, fc.Arbitrary<unknown>>>>> = {
    'w.Plain': {
      extra: fc.constantFrom<unknown>(null, [], { a: 1, b: { c: null } }, { a: null }),
      day: fc.constantFrom('2001-02-03', '2020-01-01', null),
      rate: fc.constantFrom('1.5', '9.99', null),
      done: fc.constantFrom(true, false, null),
      archived: fc.boolean(),
    },
    'w.Coded': { code, set: fc.oneof(code, fc.constant(null)) },
    'w.Numbered': {},
    'w.Secret': { pin: fc.constantFrom('1234', '5678', null) },
    'w.Order': {
      customer: related('w.Customer', depth),
      parent: related('w.Order', 0),
      lines: list('w.Line', depth),
      tags: list('w.Tag', depth),
    },
    'w.Line': { product: related('w.Plain', depth), order: related('w.Order', 0) },
    'w.Customer': {
      code,
      sites: list('w.Site', depth),
      orders: fc.option(list('w.Order', 0), { nil: undefined, freq: 1 }),
    },
    'w.Site': { customer: related('w.Customer', 0) },
    'w.Tag': {},
    'w.Badge': { holder: related('w.Customer', depth) },
    'w.Filed': { tag: related('w.Tag', depth) },
    'w.Hooked': {
      note: fc.constantFrom('fail before', 'fail after', 'set', 'x', null),
      tag: related('w.Tag', 0),
    },
  }
  const rare = (value: fc.Arbitrary<unknown>) => fc.option(value, { nil: undefined, freq: 1 })
  const own = Object.entries(relations[model] ?? {}).map(([name, value]) => [name, rare(value)] as const)
  return fc
    .record(
      { title: orWrong(title), amount: orWrong(amount), ...Object.fromEntries(own) },
      { requiredKeys: [] },
    )
    .map((fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)))
}

const target: fc.Arbitrary<Target> = fc.record({ n, lag: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, 1, 2, -1) })
const returning = fc.constantFrom({ fields: ['title', 'amount'] }, { fields: ['title', 'createdBy'] })
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })

/** Leaves out the undefined members. */
function options(some: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<object> {
  const all = Object.fromEntries(Object.entries(some).map(([name, value]) => [name, optional(value)]))
  return fc
    .record(all)
    .map((each) => Object.fromEntries(Object.entries(each).filter(([, value]) => value !== undefined)))
}

const optional = (value: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value })

const saveOptions = options({
  returning,
  merge: fc.constant('fields'),
  idempotencyKey: fc.uuid(),
}) as fc.Arbitrary<SaveOptions>
const updateOptions = options({
  returning,
  merge: fc.constant('fields'),
  idempotencyKey: fc.uuid(),
  patch: fc.constant(true),
  usesIfMatch: fc.constant(true),
}) as fc.Arbitrary<UpdateOptions>

const fields = fc.constantFrom<readonly string[] | null>(
  null,
  null,
  null,
  ['title', 'amount'],
  ['title', 'code', 'customer', 'lines', 'sites', 'tags', 'double'],
)
const grants: fc.Arbitrary<Grants> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  {
    weight: 2,
    arbitrary: fc.constant([
      {
        ...{ model: 'w.*', actions: ['read', 'create', 'update', 'remove'] as const },
        ...{ condition: null, readable: null, writable: null },
      },
    ]),
  },
  {
    weight: 3,
    arbitrary: fc.array(
      fc.record({
        model: fc.oneof({ weight: 5, arbitrary: fc.constant('w.*') }, fc.constantFrom(...MODELS)),
        actions: fc.constantFrom<readonly PermissionAction[]>(
          ['read', 'create', 'update', 'remove'],
          ['read', 'create', 'update', 'remove'],
          ['read', 'update'],
          ['create'],
          ['read'],
        ),
        condition: fc.constantFrom(null, null, 'self.amount > 3', `self.title = 'a'`, `self.title != 'b'`),
        readable: fields,
        writable: fields,
      }),
      { minLength: 1, maxLength: 3 },
    ),
  },
)

const record = (model: string) =>
  fc.record({ target: maybe(target), data: data(model, 1) }).map((each) => ({ $record: model, ...each }))

const step: fc.Arbitrary<Step> = fc
  .tuple(grants, fc.constantFrom(...MODELS))
  .chain(([granted, model]): fc.Arbitrary<Step> => {
    const base = { grants: fc.constant(granted), model: fc.constant(model) }
    return fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          ...base,
          op: fc.constant('create' as const),
          data: data(model, 2),
          options: saveOptions,
        }),
      },
      {
        weight: 5,
        arbitrary: fc.record({
          ...base,
          op: fc.constant('update' as const),
          target,
          data: data(model, 2),
          options: updateOptions,
        }),
      },
      {
        weight: 3,
        arbitrary: fc.record({
          ...base,
          op: fc.constant('save' as const),
          records: fc.array(record(model), { minLength: 1, maxLength: 6 }),
          options: saveOptions,
        }),
      },
      {
        weight: 3,
        arbitrary: fc.record({
          ...base,
          op: fc.constant('batch' as const),
          requests: fc.array(fc.oneof(record(model), fc.constantFrom(...MODELS).chain(record)), {
            minLength: 1,
            maxLength: 5,
          }),
          merge: fc.boolean(),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          ...base,
          op: fc.constant('mass' as const),
          targets: fc.array(n, { minLength: 1, maxLength: 4 }),
          data: data(model, 0),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          ...base,
          op: fc.constant('clear' as const),
          model: fc.constant('w.Filed'),
          target,
        }),
      },
    )
  })

export const steps: fc.Arbitrary<Step[]> = fc.array(step, { minLength: 10, maxLength: 10 })

/** Creates records of every model, so that most steps find some. */
export const SEED: readonly Step[] = MODELS.map((model) => ({
  ...{ grants: undefined, model, op: 'save', options: {} },
  records: [0, 1, 2, 3].map((index) => ({
    ...{ $record: model },
    data: { title: 'a', amount: 4 + index, ...(model === 'w.Coded' ? { code: `seed ${index}` } : {}) },
  })),
}))

/** The steps choose among the newest records of a model. */
const NEWEST = 6

/** One of the two services. */
export class World {
  #case = 0
  #seq = 0
  /** The ids of the records of each model in the order of creation. */
  readonly #ids = new Map<string, number[]>()
  readonly #versions = new Map<number, number>()

  constructor(
    readonly service: Service,
    private readonly app: App,
    private readonly admin: Principal,
    private readonly verbs: WriteVerbs,
    private readonly hookCalls: string[],
  ) {}

  /** `change` may replace parts of the app. */
  static async start(
    engine: Engine,
    verbs: WriteVerbs,
    change: (app: App) => App = (app) => app,
  ): Promise<World> {
    const service = await startService(engine, { models })
    const { app } = service
    for (const [index, name] of MODELS.entries())
      await app.db.transaction((tx) =>
        advanceIds(tx, app.tables.of(app.catalog.get(name)), FIRST_ID * (index + 1)),
      )
    const admin = await app.authorizer.resolvePrincipal(await identityIn(service))
    const calls: string[] = []
    const { models: others, transaction } = app.hooks
    const hooks = composeHooks([...others, ['w.Hooked', hooksOf(calls)]], transaction)
    return new World(service, change({ ...app, hooks }), admin, verbs, calls)
  }

  beginCase(): void {
    this.#case += 1
  }

  /** The answer or the error, the calls of hooks and the Changes. */
  async run(step: Step): Promise<string> {
    this.hookCalls.splice(0)
    let outcome: unknown
    try {
      outcome = await this.#call(step)
    } catch (error) {
      if (!(error instanceof VersoError)) throw error
      const { kind, message, details } = error
      outcome = { kind, message, details: { ...details, cause: undefined } }
    }
    const changes = await changesSince(this.app.db.reader, this.#seq, 10_000)
    for (const { seq, model, id, version, action } of changes) {
      this.#seq = seq
      const ids = this.#ids.get(model) ?? []
      if (action === 'create') this.#ids.set(model, [...ids, id])
      this.#versions.set(id, version)
    }
    const logged = changes.map(({ seq: _, ...change }) => change)
    return this.#toComparableText({ outcome, logged, calls: this.hookCalls })
  }

  async #call(step: Step): Promise<unknown> {
    const model = this.app.catalog.get(step.model)
    const context = createContext(this.app, this.#toPrincipal(step.grants))
    const { verbs } = this
    switch (step.op) {
      case 'create':
        return verbs.createRecord(context, model, this.#resolve(step.data), step.options)
      case 'update': {
        const { id, version } = this.#find(step.model, step.target)
        const { usesIfMatch, ...rest } = step.options as UpdateOptions & { readonly usesIfMatch?: boolean }
        const sent = this.#resolve(step.data) as object
        return usesIfMatch
          ? verbs.updateRecord(context, model, { id, data: sent }, { ...rest, ifMatch: version })
          : verbs.updateRecord(context, model, { id, data: { ...sent, version } }, rest)
      }
      case 'save':
        return verbs.saveRecords(
          context,
          model,
          step.records.map((each) => this.#resolve(each)),
          step.options,
        )
      case 'batch':
        return verbs.runBatch(
          context,
          step.requests.map((each) => this.#toRequest(each)),
          step.merge ? { merge: 'fields' } : {},
        )
      case 'mass': {
        const ids = step.targets.map((each) => this.#find(step.model, { n: each, lag: 0 }).id)
        const criteria = [{ fieldName: 'id', operator: 'in', value: ids }]
        return verbs.updateMass(context, model, { data: { criteria }, values: this.#resolve(step.data) })
      }
      case 'clear': {
        const found = this.#find(step.model, step.target)
        const prepareValues = async () => Promise.resolve({ scan: null })
        return verbs.saveWithAddition(context, model, { data: found, prepareValues }, {})
      }
    }
  }

  #toRequest(sent: object): unknown {
    const { $record: model, target: picked, data: sentData } = sent as RecordStep
    const resolved = this.#resolve(sentData)
    if (!picked) return { op: 'create', model, data: resolved }
    return { op: 'update', model, ...this.#find(model, picked), data: resolved }
  }

  #find(model: string, { n: index, lag }: Target): { id: number; version: number } {
    const ids = (this.#ids.get(model) ?? []).slice(-NEWEST)
    const id = ids[index % Math.max(ids.length, 1)] ?? 4242
    return { id, version: Math.max((this.#versions.get(id) ?? 0) - lag, 0) }
  }

  /** Replaces the placeholders in sent data. */
  #resolve(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.#resolve(each))
    if (typeof value !== 'object' || value === null) return value
    if ('$code' in value) return `${this.#case}${String(value.$code)}`
    if ('$record' in value) {
      const { $record: model, target: picked, data: sent } = value as RecordStep
      return { ...(picked ? this.#find(model, picked) : {}), ...(this.#resolve(sent) as object) }
    }
    if ('$pick' in value) {
      const { $pick: model, n: index, as, data: sent } = value as unknown as Pick
      const { id, version } = this.#find(model, { n: index, lag: as === 'stale' ? 1 : 0 })
      if (as === 'id') return { id }
      if (as === 'copy') return { id, $version: version }
      if (as === 'edited') return { id, $version: version, title: 'edited' }
      return { id, version, ...(this.#resolve(sent) as object) }
    }
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.#resolve(each)]))
  }

  #toPrincipal(granted: Grants): Principal {
    if (!granted) return this.admin
    const { catalog } = this.app
    const permissions = new Permissions(catalog, (model) =>
      granted.flatMap(
        (each) => buildGrant(catalog, model, { ...each, actions: new Set(each.actions) }, {}) ?? [],
      ),
    )
    return { ...this.admin, permissions }
  }

  /** Writes each id as its model and number, and leaves out times. */
  #toComparableText(value: unknown): string {
    return JSON.stringify(value, undefined, 1)
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
      .replaceAll(/\b\d{7,8}\b/g, (text) => {
        const id = Number(text)
        const model = MODELS[Math.floor(id / FIRST_ID) - 1] ?? ''
        return `${model}#${this.#ids.get(model)?.indexOf(id) ?? -1}`
      })
  }
}

interface RecordStep {
  readonly $record: string
  readonly target?: Target
  readonly data: unknown
}

interface Pick {
  readonly $pick: string
  readonly n: number
  readonly as: 'id' | 'copy' | 'edited' | 'update' | 'stale'
  readonly data?: unknown
}

/** Hooks that note their calls, set a value and fail for some values. */
function hooksOf(calls: string[]): ModelHooks {
  return {
    beforeSave: (_, { values, before }) => {
      calls.push(`beforeSave ${JSON.stringify(values)} ${before?.version ?? 'new'}`)
      if (values['note'] === 'fail before') throw new VersoError('forbidden', 'the hook before fails')
      if (values['note'] === 'set') values['amount'] = 8
    },
    afterSave: (_, { id, changed }) => {
      calls.push(`afterSave ${id} ${JSON.stringify(changed)}`)
      if (changed['note'] === 'fail after') throw new VersoError('forbidden', 'the hook after fails')
    },
  }
}
