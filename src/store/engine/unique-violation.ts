/** Another row has the value already. The engines report it differently; the store finds the field. */
export class UniqueViolation extends Error {
  constructor(
    /** The name of the index. Only one of `index` and `columns` is known, depending on the engine. */
    readonly index: string | undefined,
    readonly columns: readonly string[],
    options: ErrorOptions,
  ) {
    super('a unique index rejected the row', options)
    this.name = 'UniqueViolation'
  }
}
