// One scenario for each rule of hooks. Each returns what is wrong, or nothing.
import type { createTestVerso as CreateTestVerso, TestVerso, VersoRecords } from '../../src/index.js'
import type { HooksOf, PendingSaveCall } from '../../src/model/definition/hooks.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { defineHooks } from '../../src/model/definition/extend-model.js'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HookMistake } from '../mutants/hook-code.js'

type AnyCall = PendingSaveCall
/** The call of a line's hook, as far as scenarios use it. */
interface LineCall {
  readonly order: number | undefined
  readonly records: AnyCall['records']
}
type Rules = Partial<Record<keyof HooksOf, (call: AnyCall) => unknown>> & {
  line?: (call: LineCall) => unknown
  lineRemoved?: (call: LineCall) => unknown
}

/** A service whose hooks call the rules of the scenario. */
interface Setting {
  readonly verso: TestVerso
  readonly rules: Rules
  /** The rules of an extension. */
  readonly extension: Rules
}

export async function openSetting(createTestVerso: typeof CreateTestVerso): Promise<Setting> {
  const [rules, extension]: [Rules, Rules] = [{}, {}]
  const run =
    (from: Rules, name: keyof HooksOf) =>
    (call: unknown): never =>
      from[name]?.(call as AnyCall) as never
  const Order = defineModel({
    name: 'rule.Order',
    fields: {
      title: { type: 'string', required: true },
      parent: { type: 'many-to-one', target: 'rule.Order' },
      note: { type: 'string' },
      options: { type: 'json' },
      lines: { type: 'one-to-many', target: 'rule.Line', mappedBy: 'order', owned: true },
    },
    hooks: {
      beforeSave: run(rules, 'beforeSave'),
      validate: run(rules, 'validate'),
      afterSave: run(rules, 'afterSave'),
      beforeRemove: run(rules, 'beforeRemove'),
    },
  })
  const Line = defineModel({
    name: 'rule.Line',
    fields: {
      amount: { type: 'integer', required: true },
      place: { type: 'integer' },
      order: { type: 'many-to-one', target: 'rule.Order' },
    },
    hooks: {
      validate: async ({ after, records }) => {
        if (after.amount === 13) return { amount: 'is unlucky' }
        await rules.line?.({ order: after.order?.id, records })
        // Only a line whose order is written knows it.
        return after.amount === 14 && after.order ? { amount: 'is unlucky, too' } : undefined
      },
      afterRemove: async ({ before, records }) => {
        await rules.lineRemoved?.({ order: before.order?.id, records })
      },
    },
  })
  const Other = defineModel({ name: 'rule.Other', fields: { name: { type: 'string', required: true } } })
  const hooks = [defineHooks(Order, { beforeSave: run(extension, 'beforeSave') })]
  return { verso: await createTestVerso({ models: [Order, Line, Other], hooks }), rules, extension }
}

type Scenario = (setting: Setting) => Promise<string | undefined>

async function messageOf(write: Promise<unknown>): Promise<string> {
  try {
    await write
    return 'no error'
  } catch (error) {
    if (!(error instanceof Error)) return String(error)
    return error.cause instanceof Error ? error.cause.message : error.message
  }
}

async function fieldsOf(write: Promise<unknown>): Promise<string> {
  try {
    await write
    return 'no error'
  } catch (error) {
    const { errors = {} } = (error as { readonly details?: { readonly errors?: object } }).details ?? {}
    return Object.keys(errors).sort().join()
  }
}

/** Returns the text if it does not contain the expected one. */
function expectText(text: string, expected: string): string | undefined {
  return text.includes(expected) ? undefined : text
}

const create = ({ verso }: Setting, values: object = {}) =>
  verso.my.of('rule.Order').create({ title: 'a', ...values })

/** Creates a user who may read orders, and what else the grant permits. */
async function createClerk({ verso }: Setting, grant: object): Promise<VersoRecords> {
  const role = await verso.system.of('verso.auth.Role').create({ name: 'clerk' })
  const permission = { role: { id: role.id }, model: 'rule.Order', canRead: true, ...grant }
  await verso.system.of('verso.auth.Permission').create(permission)
  const password = 'red kite over hills'
  await verso.addUser({ username: 'clerk', name: 'Clerk', password, roles: ['clerk'] })
  const clerk = await verso.findUser('clerk')
  if (!clerk) throw new Error('the clerk does not exist')
  return verso.records(clerk)
}

export const SCENARIOS: Readonly<Record<HookMistake, Scenario>> = {
  'a second write of a record makes another version': async (setting) => {
    setting.rules.afterSave = async ({ id, after, records }) => {
      if (after['note'] === 'again') return
      const { version } = await records.of('rule.Order').read(id ?? 0)
      await records.of('rule.Order').update(id ?? 0, { version, note: 'again' })
    }
    const { version, note } = await create(setting)
    return version === 0 && note === 'again' ? undefined : `version ${version}, note ${String(note)}`
  },
  'a hook may wait for anything': async (setting) => {
    setting.rules.beforeSave = () => new Promise(() => undefined)
    return expectText(await messageOf(create(setting)), 'for something other than its records')
  },
  'a hook has no time limit': async (setting) => {
    const endMs = performance.now() + 1_600
    setting.rules.beforeSave = async ({ records }) => {
      while (performance.now() < endMs) {
        await records.of('rule.Other').find()
        await sleep(5)
      }
    }
    return expectText(await messageOf(create(setting)), 'did not finish within')
  },
  'a hook that computes has no time limit': async (setting) => {
    setting.rules.beforeSave = () => {
      const endMs = performance.now() + 1_100
      while (performance.now() < endMs);
    }
    return expectText(await messageOf(create(setting)), 'did not finish within')
  },
  'a hook that computes after a call has no time limit': async (setting) => {
    setting.rules.beforeSave = async ({ records }) => {
      await records.of('rule.Other').find()
      const start = process.cpuUsage()
      while (process.cpuUsage(start).user < 1_300_000);
    }
    return expectText(await messageOf(create(setting)), 'did not finish within')
  },
  'a list of the request removes what hooks have added': async (setting) => {
    const { id, lines } = await create(setting, { lines: [{ amount: 1 }] })
    const other = await create(setting)
    setting.rules.afterSave = async ({ id: saved, records }) => {
      if (saved === other.id) await records.of('rule.Line').create({ amount: 2, order: { id } })
    }
    await setting.verso.my.batch([
      { op: 'update', model: 'rule.Order', id: other.id, version: 0, data: { title: 'b' } },
      { op: 'update', model: 'rule.Order', id, version: 0, data: { title: 'b', lines } },
    ])
    const { total } = await setting.verso.my.of('rule.Line').find({ filter: { order: id } })
    return total === 2 ? undefined : `${total} lines`
  },
  'a hook sets fields that do not exist': async (setting) => {
    setting.rules.beforeSave = () => ({ titel: 'x' })
    return expectText(await messageOf(create(setting)), 'must return values for fields')
  },
  'a malformed call of a hook is a mistake of the client': async (setting) => {
    setting.rules.afterSave = ({ records }) => records.of('rule.Other').find({ filter: 'nmae = 1' })
    const error = await create(setting).catch((thrown: unknown) => thrown)
    return expectText(String(error), 'rule.Order.afterSave failed')
  },
  'hooks run before references are checked': async (setting) => {
    setting.rules.validate = async ({ after, records }) => {
      const parent = after['parent'] as { readonly id: number } | null
      if (parent) await records.of('rule.Order').lock(parent.id)
    }
    const fields = await fieldsOf(create(setting, { parent: { id: 987_654 } }))
    return fields === 'parent' ? undefined : fields
  },
  'hooks may call each other without end': async (setting) => {
    let depth = 0
    setting.rules.afterSave = async ({ records }) => {
      if (++depth < 12) await records.of('rule.Order').create({ title: 'deeper' })
    }
    return expectText(await messageOf(create(setting)), 'levels deep')
  },
  'a hook may use records of outside': async (setting) => {
    setting.rules.beforeSave = () => setting.verso.my.of('rule.Other').find()
    return expectText(await messageOf(create(setting)), 'must use the records that it gets')
  },
  'a hook may catch the error of a write': async (setting) => {
    setting.rules.afterSave = async ({ records }) => {
      await records
        .of('rule.Other')
        .create({})
        .catch(() => undefined)
    }
    return expectText(await messageOf(create(setting)), 'rule.Other was not written')
  },
  'a hook may return before its calls have ended': async (setting) => {
    setting.rules.afterSave = ({ records }) => {
      void records.of('rule.Other').create({ name: 'late' })
    }
    return expectText(await messageOf(create(setting)), 'await all of them')
  },
  'a hook may write the record that is about to be saved': async (setting) => {
    const { id } = await create(setting)
    setting.rules.beforeSave = async ({ before, records }) => {
      if (before?.['note'] === null) await records.of('rule.Order').update(id, { version: 0, note: 'inside' })
    }
    const write = setting.verso.my.of('rule.Order').update(id, { version: 0, title: 'b' })
    return expectText(await messageOf(write), 'is about to be written')
  },
  'a save that changes nothing runs hooks': async (setting) => {
    const { id } = await create(setting)
    let calls = 0
    setting.rules.beforeSave = () => {
      calls++
    }
    await setting.verso.my.of('rule.Order').update(id, { version: 0, title: 'a' })
    return calls === 0 ? undefined : `${calls} calls`
  },
  'a restore runs hooks': async (setting) => {
    const { id } = await create(setting)
    await setting.verso.my.of('rule.Order').remove(id)
    let calls = 0
    setting.rules.beforeSave = () => {
      calls++
    }
    await setting.verso.my.of('rule.Order').revert(id, { version: 1, to: 0 })
    return calls === 0 ? undefined : `${calls} calls`
  },
  'validate gets the values before beforeSave': async (setting) => {
    let seen: unknown
    setting.rules.beforeSave = () => ({ note: 'set' })
    setting.rules.validate = ({ after }) => void (seen = after['note'])
    await create(setting)
    return seen === 'set' ? undefined : String(seen)
  },
  'the first record with errors ends the request': async (setting) => {
    setting.rules.validate = () => ({ note: 'is wrong' })
    const fields = await fieldsOf(create(setting, { lines: [{ amount: 14 }] }))
    return fields === 'lines[0].amount,note' ? undefined : fields
  },
  'an error of a reference is reported without the rules of lines': async (setting) => {
    const lines = [{ amount: 13, order: undefined }]
    const fields = await fieldsOf(create(setting, { parent: { id: 987_654 }, lines }))
    return fields === 'lines[0].amount,parent' ? undefined : fields
  },
  'the request cannot write what a hook has written': async (setting) => {
    const { id, lines } = await create(setting, { lines: [{ amount: 1 }, { amount: 2 }] })
    const [, second] = lines as readonly { readonly id: number }[]
    setting.rules.lineRemoved = async ({ records }) => {
      await records.of('rule.Line').update(second?.id ?? 0, { version: 0, place: 1 })
    }
    // The client sends the other line as it was, with one change.
    const kept = { id: second?.id, version: 0, amount: 3, place: null }
    const write = setting.verso.my.of('rule.Order').update(id, { version: 0, lines: [kept] })
    const text = await messageOf(write)
    if (text !== 'no error') return text
    const stored = await setting.verso.my.of('rule.Line').read(second?.id ?? 0)
    return stored['version'] === 1 && stored['amount'] === 3 && stored['place'] === 1
      ? undefined
      : JSON.stringify(stored)
  },
  'a long call does not count for the time limit': async (setting) => {
    const endMs = performance.now() + 1_600
    setting.rules.line = async ({ records }) => {
      const lineEndMs = Math.min(endMs, performance.now() + 40)
      while (performance.now() < lineEndMs) await records.of('rule.Other').find()
    }
    setting.rules.afterSave = async ({ after, records }) => {
      if (after['note'] === 'inner') return
      const lines = Array.from({ length: 60 }, () => ({ amount: 1 }))
      await records.of('rule.Order').create({ title: 'b', note: 'inner', lines })
    }
    return expectText(await messageOf(create(setting)), 'rule.Order.afterSave did not finish within')
  },
  'a removed record is checked again at the end': async (setting) => {
    const clerk = await createClerk(setting, { condition: 'note is null', canUpdate: true, canRemove: true })
    const { id } = await create(setting)
    setting.rules.beforeRemove = async ({ records }) => {
      await records.of('rule.Order').update(id, { version: 0, title: 'gone' })
    }
    return expectText(await messageOf(clerk.of('rule.Order').remove(id)), 'no error')
  },
  'invalid data is reported without the rules': async (setting) => {
    setting.rules.validate = () => ({ note: 'is wrong' })
    const fields = await fieldsOf(create(setting, { title: 5 }))
    return fields === 'note,title' ? undefined : fields
  },
  'records of a hook have all permissions': async (setting) => {
    const clerk = await createClerk(setting, { canCreate: true })
    setting.rules.afterSave = ({ records }) => records.of('rule.Other').create({ name: 'x' })
    return expectText(await messageOf(clerk.of('rule.Order').create({ title: 'a' })), 'no model')
  },
  'a hook can change the record in its call': async (setting) => {
    setting.rules.beforeSave = ({ after }) => {
      ;(after['options'] as { color: string }).color = 'red'
    }
    return expectText(await messageOf(create(setting, { options: { color: 'blue' } })), 'read only')
  },
  'an extension runs before its model': async (setting) => {
    const calls: string[] = []
    setting.rules.beforeSave = () => void calls.push('model')
    setting.extension.beforeSave = () => void calls.push('extension')
    await create(setting)
    return calls.join() === 'model,extension' ? undefined : calls.join()
  },
}
