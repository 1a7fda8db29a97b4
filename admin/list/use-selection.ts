import { useState } from 'react'
import type { Row } from './use-shown-rows.js'

/** The selected rows of a page. Another page begins without a selection: nobody deletes what they do not see. */
export interface Selection {
  readonly rows: readonly Row[]
  readonly isAll: boolean
  readonly isSelected: (id: number) => boolean
  readonly toggle: (id: number) => void
  readonly toggleAll: () => void
  readonly clear: () => void
}

interface SelectedIds {
  /** The list that the rows belong to. */
  readonly list: string
  readonly ids: ReadonlySet<number>
}

const NONE: ReadonlySet<number> = new Set()

export function useSelection(list: string, rows: readonly Row[]): Selection {
  const [selected, setSelected] = useState<SelectedIds>({ list, ids: NONE })
  const ids = selected.list === list ? selected.ids : NONE
  const choose = (chosen: ReadonlySet<number>) => setSelected({ list, ids: chosen })
  const selectedRows = rows.filter(({ id }) => ids.has(id))
  const isAll = rows.length > 0 && selectedRows.length === rows.length
  return {
    rows: selectedRows,
    isAll,
    isSelected: (id) => ids.has(id),
    toggle: (id) => choose(new Set(ids.has(id) ? [...ids].filter((each) => each !== id) : [...ids, id])),
    toggleAll: () => choose(isAll ? NONE : new Set(rows.map(({ id }) => id))),
    clear: () => choose(NONE),
  }
}
