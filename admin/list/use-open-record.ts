import { useState, type MouseEvent } from 'react'
import { useNavigate } from 'react-router'
import { buildRecordPath } from '../service/paths.js'
import { findOpenedId, rememberOpened } from './remembered-place.js'

interface OpenRecord {
  /** The record that the person has opened last. */
  readonly openedId: number | undefined
  /** For links: only remembers the record. */
  readonly remember: (id: number) => void
  /** Opens the record of a row, unless the click was for something in it. */
  readonly openByClick: (event: MouseEvent, id: number) => void
}

export function useOpenRecord(model: string): OpenRecord {
  const navigate = useNavigate()
  const [openedId, setOpenedId] = useState(() => findOpenedId(model))
  const remember = (id: number) => {
    rememberOpened(model, id)
    setOpenedId(id)
  }
  const openByClick = (event: MouseEvent, id: number) => {
    const isForElement = (event.target as Element).closest('a, button, input, label') !== null
    // Somebody who marks a text to copy it ends with a click, too.
    const isMarking = getSelection()?.isCollapsed === false
    if (isForElement || isMarking) return
    remember(id)
    void navigate(buildRecordPath(model, id))
  }
  return { openedId, remember, openByClick }
}
