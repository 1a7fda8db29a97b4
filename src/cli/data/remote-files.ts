// The files of records of another service: fetched one by one, put beside the lines.
import { factsOf, aboutContent } from '../../model/catalog/file-facts.js'
import { safeFileName } from '../../model/values/file-name.js'
import type { Model } from '../../model/definition/model.js'
import { isFile, transferFields } from '../../formats/transfer-fields.js'
import type { ContentFolder } from './content-folder.js'
import type { Remote, RemoteRecord } from './remote.js'

/** A record whose files have been fetched: what its line says of them. */
export type FetchedFiles = Readonly<Record<string, unknown>>

export function hasFiles(model: Model): boolean {
  return transferFields(model).some(isFile)
}

export class RemoteFiles {
  constructor(
    private readonly remote: Remote,
    private readonly model: Model,
    private readonly folder: ContentFolder,
  ) {}

  /** Undefined if the record is not there any more. */
  async fetch({ id }: RemoteRecord): Promise<FetchedFiles | undefined> {
    let fetched: FetchedFiles = {}
    for (const { name } of transferFields(this.model).filter(isFile)) {
      const answer = await this.remote.download(this.model.name, Number(id), name, (content) =>
        this.folder.put(content),
      )
      if (answer === 'gone') return undefined
      const facts = answer && { name: safeFileName(answer.name), ...answer.result }
      fetched = { ...fetched, [name]: facts ? factsOf(facts) : null, ...aboutContent(this.model, facts) }
    }
    return fetched
  }
}
