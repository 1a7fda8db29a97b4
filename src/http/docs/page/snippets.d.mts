export interface Sample {
  readonly id: number
  readonly version: number
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
  /** An existing record, whose id and version replace those of the examples. */
  readonly sample?: Sample | undefined
}

/** Returns the snippets by language. A call with a body other than JSON has none, nor has a call that takes no API key. */
export function buildSnippets(source: SnippetSource): { readonly label: string; readonly text: string }[]
