// Where a person was in a list, for the way back from a record. Each tab has its own place.
import { BASE_PATH } from '../service/base-path.js'
import { buildListPath } from '../service/paths.js'
import { getAccount } from '../service/session.js'

/** Several people may use a tab one after the other. */
function buildKey(model: string): string {
  return `verso${BASE_PATH}:list:${getAccount().id}:${model}`
}

interface Place {
  /** Path and query of the list. */
  readonly address: string
  readonly scrollY: number
  /** The record that was opened last. */
  readonly openedId?: number | undefined
}

function readPlace(model: string): Place | undefined {
  try {
    const text = sessionStorage.getItem(buildKey(model))
    return text === null ? undefined : (JSON.parse(text) as Place)
  } catch {
    return undefined
  }
}

function writePlace(model: string, place: Place): void {
  try {
    sessionStorage.setItem(buildKey(model), JSON.stringify(place))
  } catch {
    // Without storage the way back leads to the top of the list.
  }
}

/** The address of the list as the person has left it: with its page, filter, order and columns. For links back to the list. */
export function findListAddress(model: string): string {
  return readPlace(model)?.address ?? buildListPath(model)
}

export function findOpenedId(model: string): number | undefined {
  return readPlace(model)?.openedId
}

export function rememberOpened(model: string, openedId: number): void {
  const place = readPlace(model) ?? { address: buildListPath(model), scrollY: 0 }
  writePlace(model, { ...place, openedId })
}

export function rememberScroll(model: string, address: string, scrollY: number): void {
  writePlace(model, { ...readPlace(model), address, scrollY })
}

/** Undefined if the person was at another address of the list last. */
export function findScroll(model: string, address: string): number | undefined {
  const place = readPlace(model)
  return place?.address === address ? place.scrollY : undefined
}
