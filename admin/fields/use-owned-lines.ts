// What a person can do with the lines of an owned list, and where the focus goes after it.
import { useCallback, useEffect, useRef, useState } from 'react'
import type { ModelInfo } from '../service/model-info.js'
import { buildInputId, type FieldInputProps } from './field-props.js'
import {
  createLine,
  findLineKey,
  isInLine,
  isUntouched,
  listLineFields,
  mergeRemoved,
  readLines,
  type Line,
  type RemovedLine,
} from './owned-lines.js'

const FOCUSABLE = 'input:not([type=hidden]), textarea, button, [tabindex="0"]'

export function buildAddId(path: string): string {
  return `add-${path}`
}

export function buildUndoId(path: string, line: Line): string {
  return `undo-${path}-${findLineKey(line, -1)}`
}

/** Sets the focus after the next render, when the element exists. */
function useFocusLater(): (id: string) => void {
  const wanted = useRef<string>(undefined)
  useEffect(() => {
    const element = wanted.current === undefined ? null : document.getElementById(wanted.current)
    if (!element) return
    wanted.current = undefined
    const target = element.matches(FOCUSABLE)
      ? element
      : (element.querySelector<HTMLElement>(FOCUSABLE) ?? element)
    target.focus()
  })
  return useCallback((id: string) => {
    wanted.current = id
  }, [])
}

/** Removed lines belong to a version: after a save they are gone. */
function useRemoved(version: number | undefined) {
  const [state, setState] = useState<{
    readonly version: number | undefined
    readonly removed: readonly RemovedLine[]
  }>({ version, removed: [] })
  const removed = state.version === version ? state.removed : []
  return [removed, (next: readonly RemovedLine[]) => setState({ version, removed: next })] as const
}

export function useOwnedLines(input: FieldInputProps, model: ModelInfo) {
  const { field, path, value, version, onChange } = input
  const lines = readLines(value)
  const [removed, setRemoved] = useRemoved(version)
  const shown = mergeRemoved(lines, removed)
  const focusLater = useFocusLater()
  const findFirstInput = (line: Line, index: number) => {
    const first = listLineFields(model, field.mappedBy).find((each) => isInLine(each, line))
    return buildInputId(`${path}[${index}].${first?.name ?? ''}`)
  }

  const change = (index: number, name: string, next: unknown) =>
    onChange(lines.map((line, each) => (each === index ? { ...line, [name]: next } : line)))
  const add = () => {
    const line = createLine(model, field.mappedBy)
    focusLater(findFirstInput(line, lines.length))
    onChange([...lines, line])
  }
  const remove = (index: number) => {
    const line = lines[index]
    if (!line) return
    const isLost = isUntouched(line, model)
    if (!isLost) setRemoved([...removed, { line, position: shown.findIndex((each) => each.index === index) }])
    focusLater(isLost ? buildAddId(path) : buildUndoId(path, line))
    onChange(lines.toSpliced(index, 1))
  }
  const undo = (line: Line, position: number) => {
    const index = shown.slice(0, position).filter((each) => each.index !== undefined).length
    setRemoved(removed.filter((each) => each.line !== line))
    focusLater(findFirstInput(line, index))
    onChange(lines.toSpliced(index, 0, line))
  }
  return { lines, shown, add, undo, change: useStable(change), remove: useStable(remove) }
}

/** A function that stays the same and calls the newest one, so that lines that did not change are not rendered again. */
function useStable<Parameters extends readonly unknown[]>(action: (...parameters: Parameters) => void) {
  const latest = useRef(action)
  useEffect(() => {
    latest.current = action
  })
  return useCallback((...parameters: Parameters) => latest.current(...parameters), [])
}
