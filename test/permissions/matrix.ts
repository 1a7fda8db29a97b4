// The cells of the matrix, and their comparison.
import { isDeepStrictEqual } from 'node:util'
import type { Records } from '../../src/wire.js'
import type { Transport } from '../targets.js'
import { MODELS } from './project-records.js'
import type { ProjectFixture } from './project-fixture.js'
import { guardedCells, tableCells } from './other-cells.js'
import { chunks, readingCells, type CellOf } from './read-cells.js'
import { ROLES } from './roles.js'
import { writingCells } from './write-cells.js'

const STRIDE = 7
const AT_ONCE = 8

export interface Compared {
  readonly count: number
  readonly differences: readonly string[]
}

export interface Part {
  /** Takes every n-th cell, from an offset. */
  readonly every: number
  readonly from: number
  readonly roles?: readonly string[]
  /** Stops after so many differences. */
  readonly atMost?: number
}

type Enter = (role: string) => Records

export async function compareReading(
  fixture: ProjectFixture,
  transport: Transport,
  part: Part,
  enter: Enter,
): Promise<Compared> {
  return compared(part, AT_ONCE, (role) => {
    const [records, reference] = [enter(role), fixture.reference(role)]
    const tables = transport === 'http' ? tableCells(fixture.client(role), reference) : []
    const cells = MODELS.flatMap((model) => within(model, readingCells(records, reference, model, STRIDE)))
    return [...sampled(part, cells), ...guardedCells(records, reference), ...tables]
  })
}

/** Runs the writes one after the other: each is rolled back before the next. */
export async function compareWriting(fixture: ProjectFixture, part: Part, enter: Enter): Promise<Compared> {
  return compared(part, 1, (role) =>
    sampled(
      part,
      MODELS.flatMap((model) => within(model, writingCells(fixture, enter(role), role, model))),
    ),
  )
}

function within(model: string, cells: readonly CellOf[]): CellOf[] {
  return cells.map((cell) => ({ ...cell, what: `${model}: ${cell.what}` }))
}

function sampled({ every, from }: Part, cells: readonly CellOf[]): CellOf[] {
  return cells.filter((_, index) => (index + from) % every === 0)
}

async function compared(
  { roles = Object.keys(ROLES), atMost = Infinity }: Part,
  atOnce: number,
  cellsOf: (role: string) => readonly CellOf[],
): Promise<Compared> {
  const differences: string[] = []
  let count = 0
  for (const role of roles) {
    for (const batch of chunks(cellsOf(role), atOnce)) {
      const answers = await Promise.all(batch.map(async ({ actual }) => plain(await actual())))
      count += batch.length
      batch.forEach(({ what, expected }, index) => {
        const [is, should] = [answers[index], plain(expected())]
        if (!isDeepStrictEqual(is, should))
          differences.push(
            `${role} on ${what}\n   is     ${JSON.stringify(is)}\n   should ${JSON.stringify(should)}`,
          )
      })
      if (differences.length >= atMost) return { count, differences }
    }
  }
  return { count, differences }
}

function plain(value: unknown): unknown {
  return value === undefined ? null : (JSON.parse(JSON.stringify(value)) as unknown)
}
