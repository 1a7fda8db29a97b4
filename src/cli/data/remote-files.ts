// Downloads the files of remote records into the content folder.
import { pickFileMetadata, deriveFileValues } from '../../model/catalog/file-facts.js'
import { sanitizeFileName } from '../../model/values/file-name.js'
import type { Model } from '../../model/definition/model.js'
import { isFileField, listTransferFields } from '../../formats/transfer-fields.js'
import type { ContentFolder } from './content-folder.js'
import type { RemoteClient, RemoteRecord } from './remote.js'

/** Values for the file fields of a record whose files were downloaded. */
export type FetchedFiles = Readonly<Record<string, unknown>>

export function hasFileFields(model: Model): boolean {
  return listTransferFields(model).some(isFileField)
}

export class RemoteFileFetcher {
  constructor(
    private readonly remote: RemoteClient,
    private readonly model: Model,
    private readonly folder: ContentFolder,
  ) {}

  /** Undefined if the record no longer exists. */
  async fetch({ id }: RemoteRecord): Promise<FetchedFiles | undefined> {
    let fetched: FetchedFiles = {}
    for (const { name } of listTransferFields(this.model).filter(isFileField)) {
      const answer = await this.remote.download(this.model.name, Number(id), name, (content) =>
        this.folder.put(content),
      )
      if (answer === 'gone') return undefined
      const facts = answer && { name: sanitizeFileName(answer.name), ...answer.result }
      fetched = {
        ...fetched,
        [name]: facts ? pickFileMetadata(facts) : null,
        ...deriveFileValues(this.model, facts),
      }
    }
    return fetched
  }
}
