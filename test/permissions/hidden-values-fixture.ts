// Two databases that differ only in hidden values: they have the same ids, versions and times.
import pino from 'pino'
import { createServer } from '../../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS, type HttpSettings } from '../../src/http/settings.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { addUser } from '../../src/service/auth/accounts.js'
import type { UserIdentity } from '../../src/service/context/identity.js'
import type { App } from '../../src/service/context/app.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createApp } from '../../src/service/create-app.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import type { Database } from '../../src/store/engine/database.js'
import { newLocation, PASSWORD, type Engine } from '../targets.js'
import { openSession } from '../wire/exchange.js'
import { contentOf, permissionOf } from './project-fixture.js'
import type { Grant } from './reference.js'

export const ITEM = 'vault.Item'
export const PLACE = 'vault.Place'
export const PART = 'vault.Part'
export const TAG = 'vault.Tag'

const definitions = [
  defineModel({
    name: PLACE,
    fields: {
      name: { type: 'string' },
      size: { type: 'integer' },
      isOpen: { type: 'boolean' },
      // Ordered by hidden fields.
      items: { type: 'one-to-many', target: ITEM, mappedBy: 'spot', orderBy: ['amount', 'note', 'day'] },
    },
  }),
  defineModel({ name: TAG, fields: { name: { type: 'string' } } }),
  defineModel({
    name: PART,
    fields: {
      name: { type: 'string' },
      weight: { type: 'integer' },
      item: { type: 'many-to-one', target: ITEM },
    },
  }),
  defineModel({
    name: ITEM,
    fields: {
      name: { type: 'string' },
      note: { type: 'string' },
      amount: { type: 'integer' },
      day: { type: 'date' },
      done: { type: 'boolean' },
      place: { type: 'many-to-one', target: PLACE },
      tags: { type: 'many-to-many', target: TAG },
      spot: { type: 'many-to-one', target: PLACE },
      parts: { type: 'one-to-many', target: PART, mappedBy: 'item', owned: true },
      paper: { type: 'binary' },
      shared: { type: 'string' },
    },
    listFields: ['name', 'note', 'amount', 'day', 'done', 'place', 'spot', 'shared'],
  }),
]
const models = definitions.map((definition) => ({ file: 'hidden-values-fixture.ts', definition }))

const SHOWN = ['name', 'spot', 'parts', 'shared', 'updatedOn', 'createdBy']
const others: readonly Grant[] = [
  { model: PLACE, can: 'r', text: 'isOpen = true' },
  { model: PART, can: 'rcud', text: 'weight < 10' },
  { model: TAG, can: 'r' },
]

/** Each role hides the same values in another way; `control` hides nothing. */
export const HIDING: Readonly<Record<string, readonly Grant[]>> = {
  /** Hides fields in all rows, like fields that do not exist. */
  never: [{ model: ITEM, can: 'rcudx', readable: SHOWN, writable: SHOWN }, ...others],
  /** Hides fields in the rows of others, where only visible fields are writable. */
  foreign: [
    { model: ITEM, can: 'rudx', readable: SHOWN, writable: SHOWN },
    { model: ITEM, can: 'rcudx', text: 'createdBy = :user' },
    ...others,
  ],
  /** Hides fields that are writable. */
  blind: [
    { model: ITEM, can: 'rcudx', readable: SHOWN },
    { model: ITEM, can: 'r', text: 'createdBy = :user' },
    ...others,
  ],
  /** Hides the whole rows of others. */
  rows: [{ model: ITEM, can: 'rcudx', text: 'createdBy = :user' }, ...others],
  /** Shows values by now that were hidden when written: in 8 since its name changed, in 9 since its related record did. */
  lately: [
    { model: ITEM, can: 'rud', readable: SHOWN },
    { model: ITEM, can: 'r', text: "name = 'opened'" },
    { model: ITEM, can: 'r', text: "spot.name = 'Yard' and spot.isOpen = true" },
    ...others,
  ],
  control: [ITEM, PLACE, PART, TAG].map((model) => ({ model, can: 'rcudx' })),
}
export const HIDERS = Object.keys(HIDING).filter((role) => role !== 'control')

export type Side = 'left' | 'right'
type Cells = Readonly<Record<string, unknown>>

/** The hidden values of foreign rows, before and after the change that made version 1. */
function hiddenIn(side: Side, index: number): readonly [before: Cells, after: Cells] {
  const isLeft = side === 'left'
  const before = {
    note: isLeft ? `amber ${index}` : `zinc ${9 - index}`,
    amount: isLeft ? 10 + index : 90 - index,
    day: isLeft ? `2001-01-0${index}` : `2031-01-0${9 - index}`,
    done: isLeft,
    place: { id: isLeft ? 1 : 2 },
    tags: isLeft ? [{ id: 1 }] : [{ id: 2 }, { id: 3 }],
  }
  const [one, other] = [
    { note: `${before.note}!`, day: '2015-05-05' },
    { amount: 55, done: index % 2 === 0 },
  ]
  return [before, isLeft ? one : other]
}

export interface HiddenValuesFixture {
  readonly app: App
  readonly url: string
  readonly cookies: ReadonlyMap<string, string>
  close(): Promise<void>
}

const MOMENT = Date.UTC(2026, 0, 2, 3, 4, 5)
const STEP_MS = 10_000
/** Times between the writes that create the records. */
export const MOMENTS = [-1, 0, 1, 2, 3, 5, 8, 13, 15, 16, 17, 18, 30].map((step) =>
  new Date(MOMENT + (step + 0.5) * STEP_MS).toISOString(),
)
/** Records whose past is hidden, but not their present. */
export const OPENED_IDS = [8, 9]
/** Records of no user; those of `foreign`, `blind` and `rows` follow. */
export const FOREIGN_IDS = [1, 2, 3, 4]

export async function openHiddenValuesFixture(
  engine: Engine,
  side: Side,
  http: Partial<HttpSettings> = {},
): Promise<HiddenValuesFixture> {
  const location = await newLocation(engine)
  const clock = new SteppingClock()
  const whole = await createApp({
    ...{ models, clock, settings: { db: location.url } },
    log: pino({ level: 'silent' }),
  })
  const { app, undo } = undoing(whole)
  await fill(app, side, clock)
  const settings = { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0, ...http }
  const server = await createServer(app, settings)
  const [url = ''] = await server.listen()
  const cookies = new Map<string, string>()
  for (const role of Object.keys(HIDING)) {
    const body = JSON.stringify({ username: role, password: PASSWORD })
    cookies.set(role, await openSession(url, {}, body))
  }
  undo()
  return {
    ...{ app, url, cookies },
    close: async () => {
      await server.close()
      await whole.close()
      location.remove()
    },
  }
}

/** The app, with a switch that rolls back every later write. */
function undoing(app: App): { readonly app: App; readonly undo: () => void } {
  let isOn = false
  const { db: real } = app
  class Undone extends Error {}
  const db: Database = {
    ...{ dialect: real.dialect, reader: real.reader, queryPool: real.queryPool, blobs: real.blobs },
    commits: real.commits,
    writability: () => real.writability(),
    gauges: () => real.gauges(),
    measure: () => real.measure(),
    close: () => real.close(),
    transaction: async (work, options) => {
      if (!isOn) return real.transaction(work, options)
      let answer: { readonly value: Awaited<ReturnType<typeof work>> } | undefined
      try {
        return await real.transaction(async (tx) => {
          answer = { value: await work(tx) }
          throw new Undone()
        }, options)
      } catch (error) {
        if (error instanceof Undone && answer) return answer.value
        throw error
      }
    },
  }
  const undo = () => {
    isOn = true
  }
  return { app: { ...app, db }, undo }
}

/** A clock that only advances on `step`. */
class SteppingClock {
  #steps = 0

  now(): number {
    return MOMENT + this.#steps * STEP_MS
  }

  step(): void {
    this.#steps++
  }
}

async function fill(app: App, side: Side, clock: SteppingClock): Promise<void> {
  const all = recordsForPrincipal(app, SERVICE_PRINCIPAL)
  const identities = new Map<string, UserIdentity>()
  for (const [name, grants] of Object.entries(HIDING)) {
    await all.create('verso.auth.Role', { name, permissions: grants.map(permissionOf) })
    const id = await addUser(app, { username: name, name, password: PASSWORD, roles: [name] })
    identities.set(name, { id, version: 0, username: name, name })
  }
  const isLeft = side === 'left'
  for (const name of ['Attic', 'Barn']) await all.create(PLACE, { name, size: 1, isOpen: true })
  // No role sees these two: neither their names nor which of them is referenced.
  for (const name of isLeft ? ['Cave', 'Well'] : ['Mine', 'Tomb'])
    await all.create(PLACE, { name, size: isLeft ? 3 : 8, isOpen: false })
  for (const name of ['red', 'green', 'blue']) await all.create(TAG, { name })
  await addItems(app, side, identities, clock)
}

/** Creates the records of no user, then one for each user with a condition on their own records. */
async function addItems(
  app: App,
  side: Side,
  identities: ReadonlyMap<string, UserIdentity>,
  clock: SteppingClock,
): Promise<void> {
  const isLeft = side === 'left'
  const owners = ['foreign', 'blind', 'rows'].flatMap((name) => identities.get(name) ?? [])
  const all = recordsForPrincipal(app, SERVICE_PRINCIPAL)
  const part = { name: isLeft ? 'bolt' : 'nut', weight: isLeft ? 20 : 30 }
  for (const index of FOREIGN_IDS.keys()) {
    const [before, after] = hiddenIn(side, index + 1)
    const spot = { id: isLeft ? 3 : 4 }
    const parts = [{ name: 'lid', weight: 1 }, part]
    const shared = { name: `item ${index}`, spot, parts, shared: 'same' }
    clock.step()
    const { data } = await all.create(ITEM, { ...shared, ...before })
    clock.step()
    const request = { data: { id: data.id, version: 0 }, field: 'paper', name: 'a.txt' }
    await all.upload(ITEM, { ...request, content: contentOf(isLeft ? 'left' : 'right!') })
    clock.step()
    await all.update(ITEM, data.id, { version: 1, ...after })
  }
  for (const user of owners) {
    const own = {
      name: `of ${user.username}`,
      note: 'own',
      amount: 5,
      day: '2010-01-01',
      done: false,
      shared: 'own',
    }
    await recordsForPrincipal(app, { ...SERVICE_PRINCIPAL, user }).create(ITEM, {
      ...own,
      place: { id: 1 },
      tags: [{ id: 2 }],
    })
  }
  await addOpened(app, isLeft, clock)
}

async function addOpened(app: App, isLeft: boolean, clock: SteppingClock): Promise<void> {
  const all = recordsForPrincipal(app, SERVICE_PRINCIPAL)
  const { data: yard } = await all.create(PLACE, { name: 'Yard', size: 2, isOpen: false })
  const past = {
    note: isLeft ? 'public' : 'secret',
    amount: isLeft ? 7 : 8,
    done: isLeft,
    tags: [{ id: isLeft ? 1 : 2 }],
  }
  const now = { note: 'public', amount: 9, done: true, tags: [{ id: 1 }] }
  clock.step()
  const first = await all.create(ITEM, { name: 'closed', ...past })
  clock.step()
  await all.update(ITEM, first.data.id, { version: 0, name: 'opened', ...now })
  clock.step()
  const second = await all.create(ITEM, { name: 'in the yard', spot: { id: yard.id }, ...past })
  clock.step()
  await all.update(ITEM, second.data.id, { version: 0, ...now })
  clock.step()
  await all.update(PLACE, yard.id, { version: 0, isOpen: true })
  const third = await all.create(ITEM, { name: 'deleted', shared: 'same', ...past })
  clock.step()
  await all.remove(ITEM, third.data.id)
}
