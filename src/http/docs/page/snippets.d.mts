/** What examples contain in place of invented values. A record has an id and a version. */
export interface Sample {
  readonly model?: string | undefined
  readonly id?: number | undefined
  readonly version?: number | undefined
}

export type ApiDocument = Readonly<Record<string, unknown>> & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export interface SnippetSource {
  readonly document: ApiDocument
  readonly path: string
  /** In lower case, as in the document. */
  readonly method: string
  readonly baseUrl: string
  /** A model, and an existing record, whose id and version replace those of the examples. */
  readonly sample?: Sample | undefined
}

/**
 * Returns the snippets by language. A call has none if it takes no API key, or if a value that it needs is not known. TypeScript is
 * missing if the client cannot read the response.
 */
export function buildSnippets(source: SnippetSource): { readonly label: string; readonly text: string }[]
