// Emotion writes its rules into constructed style sheets, which a Content-Security-Policy without 'unsafe-inline' permits.
import createCache, { type EmotionCache } from '@emotion/cache'

interface SheetOptions {
  readonly key: string
  readonly container: Node
}

/** Has the members of Emotion's own sheet. Emotion's `Global` constructs further ones by `cache.sheet.constructor`. */
class AdoptedSheet {
  readonly isSpeedy = true
  readonly nonce = undefined
  readonly key: string
  readonly container: Node
  before: unknown = null
  tags: unknown[] = []
  readonly #sheet = new CSSStyleSheet()

  constructor({ key, container }: SheetOptions) {
    this.key = key
    this.container = container
    const others = document.adoptedStyleSheets
    // Global styles come first, so that components override them.
    document.adoptedStyleSheets = key.endsWith('-global')
      ? [this.#sheet, ...others]
      : [...others, this.#sheet]
  }

  hydrate(): void {
    // Nothing is rendered on the server.
  }

  insert(rule: string): void {
    // `Global` flushes only a sheet that has tags.
    this.tags = [{ nextElementSibling: null }]
    try {
      this.#sheet.insertRule(rule, this.#sheet.cssRules.length)
    } catch {
      // A selector of another browser.
    }
  }

  flush(): void {
    this.#sheet.replaceSync('')
    this.tags = []
  }
}

export function createStyleCache(): EmotionCache {
  const cache = createCache({ key: 'css' })
  cache.sheet = new AdoptedSheet({ key: 'css', container: document.head }) as unknown as EmotionCache['sheet']
  return cache
}
