// People as records name them.
export interface UserReference {
  readonly id: number
  readonly name?: string | null | undefined
}

export function isUserReference(value: unknown): value is UserReference {
  return typeof value === 'object' && value !== null && 'id' in value
}
