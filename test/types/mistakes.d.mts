export const PRELUDE: string
export const MISTAKES: readonly (readonly [statement: string, ...parts: string[]])[]
