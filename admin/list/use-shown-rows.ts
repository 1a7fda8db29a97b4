// Rows must not move under the pointer. Values follow the changes of others; the order and the number of rows wait for the person.
import { useState } from 'react'

export interface Row {
  readonly id: number
  readonly version: number
  readonly [field: string]: unknown
}

interface HeldRows {
  /** Says which list the rows belong to: model, page, filter, order and columns. */
  readonly list: string
  /** False until the first read after the person came here has ended. Rows from the cache may still be replaced. */
  readonly isCurrent: boolean
  readonly rows: readonly Row[]
}

interface ReadRows {
  readonly list: string
  /** Undefined while the first read of this list lasts. */
  readonly rows: readonly Row[] | undefined
  readonly isFetching: boolean
}

export interface ShownRows {
  readonly rows: readonly Row[]
  /** The list would have other rows, or another order. */
  readonly hasChanged: boolean
  /** Shows the rows as they are now. */
  readonly showCurrent: () => void
}

const NOTHING: HeldRows = { list: '', isCurrent: false, rows: [] }

export function useShownRows({ list, rows, isFetching }: ReadRows): ShownRows {
  const [held, setHeld] = useState(NOTHING)
  const next = rows && adopt(held, { list, rows, isFetching })
  // React renders again at once, before the browser paints.
  if (next && next !== held) setHeld(next)
  const shown = next ?? held
  const isOfList = rows !== undefined && shown.list === list
  return {
    rows: shown.rows,
    hasChanged: isOfList && !hasSameIds(shown.rows, rows),
    showCurrent: () => setHeld((before) => ({ ...before, isCurrent: false })),
  }
}

function adopt(
  held: HeldRows,
  { list, rows, isFetching }: ReadRows & { readonly rows: readonly Row[] },
): HeldRows {
  const isWelcome = held.list !== list || !held.isCurrent || hasSameIds(held.rows, rows)
  if (isWelcome) {
    const isCurrent = (held.list === list && held.isCurrent) || !isFetching
    return held.list === list && held.rows === rows && held.isCurrent === isCurrent
      ? held
      : { list, isCurrent, rows }
  }
  const found = new Map(rows.map((row) => [row.id, row]))
  const updated = held.rows.map((row) => found.get(row.id) ?? row)
  return updated.every((row, index) => row === held.rows[index]) ? held : { ...held, rows: updated }
}

function hasSameIds(left: readonly Row[], right: readonly Row[]): boolean {
  return left.length === right.length && left.every(({ id }, index) => id === right[index]?.id)
}
