/**
 * Escapes control characters and line separators. A text that another user wrote must not move the cursor of the terminal, hide other
 * lines or forge one.
 */
export function escapeControls(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\u2028\u2029]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
