import { useEffect, useLayoutEffect, useRef } from 'react'
import { useLocation } from 'react-router'
import { findScroll, rememberScroll } from './remembered-place.js'

/** Remembers how far a list is scrolled, and scrolls there when the person comes back and its rows are shown. */
export function useScrollMemory(model: string, isShown: boolean): void {
  const location = useLocation()
  const { pathname, search } = location
  // Set by the list controller.
  const isOtherPage = (location.state as { readonly _scrollToTop?: boolean } | null)?._scrollToTop === true
  const address = pathname + search
  const restored = useRef<string | undefined>(undefined)
  useLayoutEffect(() => {
    if (!isShown || restored.current === address) return
    const isFirst = restored.current === undefined
    restored.current = address
    if (isFirst) window.scrollTo(0, findScroll(model, address) ?? 0)
    else if (isOtherPage) window.scrollTo(0, 0)
  }, [model, address, isShown, isOtherPage])
  useEffect(() => {
    let scrollY = window.scrollY
    const follow = () => {
      scrollY = window.scrollY
    }
    const remember = () => {
      if (restored.current === address) rememberScroll(model, address, scrollY)
    }
    window.addEventListener('scroll', follow, { passive: true })
    window.addEventListener('pagehide', remember)
    return () => {
      window.removeEventListener('scroll', follow)
      window.removeEventListener('pagehide', remember)
      remember()
    }
  }, [model, address])
}
