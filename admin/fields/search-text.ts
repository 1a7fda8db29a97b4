// The service refuses longer searches. Somebody who pastes a long text still finds something by its beginning.
const MAX_CHARACTERS = 100
const MAX_WORDS = 8

export function splitWords(text: string): readonly string[] {
  return text
    .slice(0, MAX_CHARACTERS)
    .split(/\s+/)
    .filter((word) => word !== '')
    .slice(0, MAX_WORDS)
}

export function limitSearchText(text: string): string {
  return splitWords(text).join(' ')
}
