// Small settings that the browser keeps. A browser that forbids storage works, too: it forgets them.
import { BASE_PATH } from './base-path.js'

/** Services behind different base paths share the storage of their origin. */
const PREFIX = `verso${BASE_PATH}:`

export function readStored(key: string): unknown {
  try {
    const text = localStorage.getItem(PREFIX + key)
    return text === null ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns false if the browser did not store the value. Undefined removes it. */
export function writeStored(key: string, value: unknown): boolean {
  try {
    if (value === undefined) localStorage.removeItem(PREFIX + key)
    else localStorage.setItem(PREFIX + key, JSON.stringify(value))
    return true
  } catch {
    return false
  }
}

/** Lists the stored keys that begin with a text. */
export function listStored(beginning: string): readonly string[] {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(PREFIX + beginning))
      .map((key) => key.slice(PREFIX.length))
  } catch {
    return []
  }
}
