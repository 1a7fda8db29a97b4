// Stages the records of another service in files that an import reads.
import { open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { ConfigError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { pickFileMetadata, deriveFileValues } from '../../model/catalog/file-metadata.js'
import { sanitizeFileName } from '../../model/values/file-name.js'
import { isFileField, listTransferFields } from '../../formats/transfer-fields.js'
import { convertRemoteRecord, listRemoteFields } from '../../formats/remote-record.js'
import { PRIVATE_FILE_MODE, makeFolder } from '../../store/engine/private-files.js'
import { ContentFolder } from './content-folder.js'
import { NEWLINE } from './ndjson-file.js'
import type { RemoteClient, RemoteRecord } from './remote.js'

const PAGE_RECORDS = 500
/** Smaller pages: a copy that resumes downloads the files of the last page again. */
const PAGE_RECORDS_WITH_FILES = 20
const MAX_FILE_ATTEMPTS = 5
const TAIL_BYTES = 64 * 1024

export interface StagedModel {
  readonly model: Model
  /** Undefined if the remote service has no such model. */
  readonly file: string | undefined
  readonly records: number
}

export interface StagingOptions {
  readonly remote: RemoteClient
  /** Folder for the data files and their contents. */
  readonly folder: string
  /** Called with the number of records of each page. */
  readonly onRecords: (count: number) => void
}

/**
 * Copies the records of a model into a file. Resumes an interrupted copy after its last complete line; a file without
 * `.part` is complete.
 */
export async function stageModel(model: Model, options: StagingOptions): Promise<StagedModel> {
  makeFolder(options.folder)
  const file = path.join(options.folder, `${model.name}.ndjson`)
  if (await isExistingFile(file)) return { model, file, records: 0 }
  const unfinished = `${file}.part`
  const handle = await open(unfinished, (await isExistingFile(unfinished)) ? 'r+' : 'w+', PRIVATE_FILE_MODE)
  try {
    const records = await copyRecords(model, options, handle)
    if (records === undefined) {
      await rm(unfinished)
      return { model, file: undefined, records: 0 }
    }
    await handle.sync()
    await rename(unfinished, file)
    return { model, file, records }
  } finally {
    await handle.close()
  }
}

/** Returns the number of copied records, or undefined if the remote service has no such model. */
async function copyRecords(
  model: Model,
  { remote, folder, onRecords }: StagingOptions,
  handle: FileHandle,
): Promise<number | undefined> {
  const fields = listRemoteFields(model)
  // Files are downloaded one by one.
  const names = fields.filter((field) => !isFileField(field)).map(({ name }) => name)
  const files = hasFileFields(model)
    ? new RemoteFileFetcher(remote, model, new ContentFolder(folder))
    : undefined
  const limit = files ? PAGE_RECORDS_WITH_FILES : PAGE_RECORDS
  const read = (from: number, count: number) => remote.readPage(model.name, names, from, count)
  let { end, after } = await findResumePoint(handle)
  await handle.truncate(end)
  let records = 0
  for (;;) {
    const page = await read(after, limit)
    if (!page) return undefined
    const last = Number(page.at(-1)?.['id'] ?? after)
    if (page.length === 0) return records
    // A service that ignores the sort order or the filter would repeat pages for ever, or omit records.
    if (!isAscending(after, page))
      throw new ConfigError('Nothing was imported', [
        `${model.name}: the other service does not filter and sort by id, so a copy would be incomplete`,
      ])
    const complete = files ? await attachFiles(files, model, page, read) : page
    const text = complete.map(
      (record) => `${JSON.stringify(convertRemoteRecord(fields, record, remote.isJsonText))}\n`,
    )
    const bytes = Buffer.from(text.join(''))
    await handle.write(bytes, 0, bytes.length, end)
    end += bytes.length
    after = last
    records += page.length
    onRecords(page.length)
  }
}

type PageReader = (after: number, limit: number) => Promise<readonly RemoteRecord[] | undefined>

/**
 * Downloads the files of a page. A record and its files belong together only if the record still has the same version
 * afterwards; other records are downloaded again.
 */
async function attachFiles(
  files: RemoteFileFetcher,
  model: Model,
  page: readonly RemoteRecord[],
  read: PageReader,
): Promise<readonly RemoteRecord[]> {
  const complete = new Map<unknown, RemoteRecord>()
  let pending: readonly RemoteRecord[] = page
  for (let attempt = 1; attempt <= MAX_FILE_ATTEMPTS; attempt++) {
    for (const record of pending) {
      const fetched = await files.fetch(record)
      if (fetched) complete.set(record['id'], { ...record, ...fetched })
      else complete.delete(record['id'])
    }
    const current = await rereadPage(page, read)
    const isUnchanged = ({ id, version }: RemoteRecord) =>
      complete.has(id) && complete.get(id)?.['version'] === version
    pending = current.filter((record) => !isUnchanged(record))
    // Sorted by id and as they are now, because a copy resumes from the id of the last line.
    if (pending.length === 0) return current.map((record) => complete.get(record['id']) ?? record)
  }
  const ids = pending.map(({ id }) => String(id)).join(', ')
  throw new ConfigError('Nothing was imported', [
    `${model.name} ${ids}: the files cannot be downloaded, or changed during each of ${MAX_FILE_ATTEMPTS} attempts`,
  ])
}

/**
 * Reads the current records from the first to the last id of the page. Records may have been removed or added
 * meanwhile.
 */
async function rereadPage(page: readonly RemoteRecord[], read: PageReader): Promise<readonly RemoteRecord[]> {
  const [first, last] = [Number(page[0]?.['id']), Number(page.at(-1)?.['id'])]
  const found: RemoteRecord[] = []
  for (let after = first - 1; after < last;) {
    const current = (await read(after, page.length)) ?? []
    if (current.length === 0 || !isAscending(after, current)) break
    found.push(...current.filter(({ id }) => Number(id) <= last))
    after = Number(current.at(-1)?.['id'])
  }
  return found
}

/** Values for the file fields of a record whose files were downloaded. */
type FetchedFiles = Readonly<Record<string, unknown>>

function hasFileFields(model: Model): boolean {
  return listTransferFields(model).some(isFileField)
}

class RemoteFileFetcher {
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

function isAscending(after: number, page: readonly Readonly<Record<string, unknown>>[]): boolean {
  let before = after
  for (const { id } of page) {
    if (typeof id !== 'number' || id <= before) return false
    before = id
  }
  return true
}

/** Finds the end of the last complete line, and the id in it. */
async function findResumePoint(handle: FileHandle): Promise<{ end: number; after: number }> {
  const { size } = await handle.stat()
  for (let length = Math.min(size, TAIL_BYTES); length > 0; length = Math.min(size, length * 2)) {
    const bytes = Buffer.alloc(length)
    await handle.read(bytes, 0, length, size - length)
    const last = bytes.lastIndexOf(NEWLINE)
    const start = last === -1 ? -1 : bytes.lastIndexOf(NEWLINE, last - 1)
    if (last !== -1 && (start !== -1 || length === size)) {
      const { id } = JSON.parse(bytes.toString('utf8', start + 1, last)) as { id: number }
      return { end: size - length + last + 1, after: id }
    }
    if (length === size) break
  }
  return { end: 0, after: 0 }
}

async function isExistingFile(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  )
}
