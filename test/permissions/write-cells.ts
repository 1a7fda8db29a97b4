// Every write, for one role and one model: its error or the records afterwards, and its answer.
import { VersoError } from '../../src/errors.js'
import type { Records } from '../../src/wire.js'
import type { Cell, Dataset } from '../properties/search-oracle.js'
import { BADGE, PROJECT, SHAPES, TAG, TASK, TEAM, USER } from './project-records.js'
import { contentOf, dataOf, type ProjectFixture } from './project-fixture.js'
import { namesOf, rowsOf, type CellOf } from './read-cells.js'
import { complete, type Reference } from './reference.js'
import { contents, judge, NEW_ID, sorted, type Cells, type Step } from './verdict.js'

/** New values for each field. */
const OTHER: Readonly<Record<string, Readonly<Record<string, readonly Cell[]>>>> = {
  [TEAM]: { name: ['Nova'], city: ['Kiel', 'Bern'], budget: [25], parent: [1, 2, null] },
  [PROJECT]: {
    ...{ title: ['Omega'], score: [2, 9], day: ['2030-01-01'], flag: [true, false], team: [1, 3, 4, null] },
    tags: [[1], [2, 5], []],
  },
  [TASK]: { label: ['new'], hours: [1, 9], project: [1, 4, null] },
  [BADGE]: { code: ['X'], holder: [8, null] },
  [TAG]: { name: ['red', 'pink'], rank: [1, 9], archived: [true] },
}

const version = (reference: Reference, model: string, id: number) =>
  rowsOf(reference, model).find((row) => row.id === id)?.['version'] ?? 0

export function writingCells(
  fixture: ProjectFixture,
  records: Records,
  role: string,
  model: string,
): CellOf[] {
  const reference = fixture.reference(role)
  const cell: Make = (what, steps, call, isForbidden = false) => ({
    what,
    expected: () => {
      const verdict = isForbidden ? 'forbidden' : judge(reference, model, steps)
      return typeof verdict === 'string'
        ? verdict
        : { after: plain(contents(verdict, fixture.dataset)), answer: 'as it is read' }
    },
    actual: async () => {
      try {
        const { answer, after } = await fixture.undone(() => call(records))
        if (!after) return 'nothing was written'
        return {
          after: plain(contents(after, fixture.dataset)),
          answer: answered(fixture, role, model, answer, after),
        }
      } catch (error) {
        if (error instanceof VersoError) return error.kind
        throw error
      }
    },
  })
  return [
    ...updates(reference, model, cell),
    ...creates(model, cell),
    ...removals(reference, model, cell),
    ...(model === PROJECT ? [...nested(reference, cell), ...files(reference, cell)] : []),
  ]
}

type Make = (
  what: string,
  steps: readonly Step[],
  call: (records: Records) => Promise<unknown>,
  isForbidden?: boolean,
) => CellOf

/** The answer to a write must equal a read of the resulting dataset, or only `id` and `version` if the record is hidden. */
function answered(
  fixture: ProjectFixture,
  role: string,
  model: string,
  answer: unknown,
  after: Dataset,
): unknown {
  const { data } = answer as { data: unknown }
  const shown = (Array.isArray(data) ? data : [data]) as readonly unknown[]
  const users = { [USER]: fixture.dataset[USER] ?? [] }
  const reference = fixture.reference(role, complete(SHAPES, { ...after, ...users }))
  for (const record of shown) {
    // A number of records, or the id of a deleted one, shows no record.
    if (typeof record !== 'object' || record === null) continue
    const { id } = record as { id: number }
    const row = after[model]?.find((each) => each.id === id)
    const whole = row && reference.look.at(model, id)
    if (!whole) continue
    const expected = reference.sees(model, whole)
      ? reference.show(model, whole, namesOf(model))
      : { id, version: whole['version'] }
    if (JSON.stringify(sorted(record)) !== JSON.stringify(sorted(expected)))
      return { is: sorted(record), should: sorted(expected) }
  }
  return 'as it is read'
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown
}

function updates(reference: Reference, model: string, cell: Make): CellOf[] {
  const rows = rowsOf(reference, model)
  const single = rows.flatMap((row) =>
    Object.entries(OTHER[model] ?? {}).flatMap(([name, values]) => {
      const chosen = values[row.id % values.length] ?? null
      const same = row[name] ?? null
      return [chosen, same].map((value, index) => {
        const cells = { [name]: value }
        const data = { ...dataOf(model, cells), version: version(reference, model, row.id) }
        const step: Step = { model, action: 'update', id: row.id, cells }
        return cell(
          `update ${row.id} ${index === 0 ? '' : 'same '}${JSON.stringify(cells)}`,
          [step],
          (records) => records.update(model, row.id, data),
        )
      })
    }),
  )
  const [field = '', values = []] = Object.entries(OTHER[model] ?? {})[0] ?? []
  const cells = { [field]: values[0] ?? null }
  const several = rows.slice(1).map((row, index) => {
    const both = [rows[index], row].flatMap((each) => each ?? [])
    const steps = both.map(({ id }): Step => ({ model, action: 'update', id, cells, isOneOfSeveral: true }))
    const data = both.map(({ id }) => ({ id, version: version(reference, model, id), ...cells }))
    return cell(`save ${both.map(({ id }) => id).join()}`, steps, (records) => records.save(model, data))
  })
  const mass = rows.slice(1).map((row, index) => {
    const both = [rows[index], row].flatMap((each) => (each && reference.sees(model, each) ? [each] : []))
    const steps = both.map(({ id }): Step => ({ model, action: 'update', id, cells }))
    const _domain = `id in (${rows[index]?.id ?? 0}, ${row.id})`
    const request = { data: { _domain, _archived: true }, values: cells }
    const mays = ['r', 'u'].every((action) => reference.grantsOn(model, action).length > 0)
    const isForbidden = reference.isKnown(model) && !mays
    return cell(`updateMass ${_domain}`, steps, (records) => records.updateMass(model, request), isForbidden)
  })
  return [...single, ...several, ...mass]
}

function creates(model: string, cell: Make): CellOf[] {
  const fields = Object.entries(OTHER[model] ?? {})
  const one = fields.flatMap(([name, values]) => values.map((value): Cells => ({ [name]: value })))
  const pairs = fields.flatMap(([name, values], index) => {
    const [other = '', others = []] = fields[(index + 1) % fields.length] ?? []
    return values.map((value, turn): Cells => ({
      [name]: value,
      [other]: others[turn % others.length] ?? null,
    }))
  })
  return [{}, ...one, ...pairs].map((cells) =>
    cell(`create ${JSON.stringify(cells)}`, [{ model, action: 'create', cells }], (records) =>
      records.create(model, dataOf(model, cells)),
    ),
  )
}

/** Deletes of records that nothing refers to but their own members. */
function removals(reference: Reference, model: string, cell: Make): CellOf[] {
  const free = rowsOf(reference, model).filter(({ id }) => !isReferredTo(reference, model, id))
  const stepsOf = (id: number): Step[] => [
    { model, action: 'remove', id },
    ...(model === PROJECT
      ? membersOf(reference, id).map((task): Step => ({
          model: TASK,
          action: 'remove',
          id: task,
          isMember: true,
        }))
      : []),
  ]
  const single = free.map(({ id }) =>
    cell(`remove ${id}`, stepsOf(id), (records) => records.remove(model, id)),
  )
  const several = free.slice(1).map(({ id }, index) => {
    const ids = [free[index]?.id ?? 0, id]
    return cell(`removeAll ${ids.join()}`, ids.flatMap(stepsOf), (records) =>
      records.removeAll(
        model,
        ids.map((each) => ({ id: each })),
      ),
    )
  })
  return [...single, ...several]
}

function isReferredTo({ dataset }: Reference, model: string, id: number): boolean {
  return Object.entries(SHAPES).some(([other, { fields }]) =>
    Object.entries(fields).some(([name, shape]) => {
      const isHeld = typeof shape === 'object' && shape.through === undefined && shape.kind === 'one'
      const isOwned = other === TASK && name === 'project'
      return (
        isHeld && shape.target === model && !isOwned && (dataset[other] ?? []).some((row) => row[name] === id)
      )
    }),
  )
}

function membersOf({ look }: Reference, id: number): readonly number[] {
  return (look.at(PROJECT, id)?.['tasks'] ?? []) as readonly number[]
}

/** Updates with new related records, changed ones, and dropped members. */
function nested(reference: Reference, cell: Make): CellOf[] {
  return rowsOf(reference, PROJECT).flatMap(({ id }) => {
    const at = version(reference, PROJECT, id)
    const owner: Step = { model: PROJECT, action: 'update', id, cells: {} }
    const seen = reference.near(TASK, membersOf(reference, id), 'project')
    const kept = seen.map((task) => ({ id: task.id }))
    const [first] = seen
    const taskNew: Step = { model: TASK, action: 'create', cells: { hours: 3, project: id } }
    const teamNew: Step = { model: TEAM, action: 'create', cells: { city: 'Kiel' } }
    const cells: CellOf[] = [
      cell(`${id} with a new task`, [{ ...owner, sent: ['tasks'], changed: ['tasks'] }, taskNew], (records) =>
        records.update(PROJECT, id, { version: at, tasks: [...kept, { hours: 3 }] }),
      ),
      cell(`${id} with a new team`, [{ ...owner, cells: { team: NEW_ID + 1 } }, teamNew], (records) =>
        records.update(PROJECT, id, { version: at, team: { city: 'Kiel' } }),
      ),
    ]
    if (!first) return cells
    const changed: Step = { model: TASK, action: 'update', id: first.id, cells: { hours: 5 } }
    const dropped: Step = { model: TASK, action: 'remove', id: first.id }
    const taskAt = version(reference, TASK, first.id)
    const others = kept.filter((each) => each.id !== first.id)
    return [
      ...cells,
      cell(`${id} with a changed task`, [{ ...owner, sent: ['tasks'] }, changed], (records) =>
        records.update(PROJECT, id, {
          version: at,
          tasks: [{ id: first.id, version: taskAt, hours: 5 }, ...others],
        }),
      ),
      cell(`${id} without a task`, [{ ...owner, sent: ['tasks'], changed: ['tasks'] }, dropped], (records) =>
        records.update(PROJECT, id, { version: at, tasks: others }),
      ),
    ]
  })
}

/** A file is a field like any other: an upload or a clear changes it. */
function files(reference: Reference, cell: Make): CellOf[] {
  return rowsOf(reference, PROJECT).flatMap(({ id }) => {
    const at = Number(version(reference, PROJECT, id))
    const step: Step = {
      model: PROJECT,
      action: 'update',
      id,
      sent: ['cover'],
      changed: ['cover'],
      isFile: true,
    }
    return [
      cell(`upload ${id}`, [step], (records) =>
        records.upload(PROJECT, {
          data: { id, version: at },
          field: 'cover',
          name: 'b.txt',
          content: contentOf('b'),
        }),
      ),
      cell(`clear ${id}`, [step], (records) => records.clear(PROJECT, id, 'cover', { version: at })),
    ]
  })
}
