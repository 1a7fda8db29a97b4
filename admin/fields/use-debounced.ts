import { useEffect, useState } from 'react'

/** Time without a key press after which a search begins. */
export const SEARCH_DELAY_MS = 300

/** Follows a value after it has stayed the same for a while. */
export function useDebounced<T>(value: T, delayMs = SEARCH_DELAY_MS): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), delayMs)
    return () => clearTimeout(timer)
  }, [value, delayMs])
  return settled
}
