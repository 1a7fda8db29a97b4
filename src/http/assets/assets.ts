// Files that browsers load and cache for ever: those of the API reference, of the web application, and of the pages behind one-time links.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, brotliDecompress, gzip } from 'node:zlib'
import type { FastifyReply } from 'fastify'
import { VersoError } from '../../errors.js'
import { chooseCoding, type Coding } from '../response/content-coding.js'
import { replaceHeader, sendBody, setHeader, type SentReply } from '../response/send.js'

const VERSION_CHARACTERS = 16

/** The path of a file changes with its content. */
const CACHE_FOR_EVER = 'public, max-age=31536000, immutable'

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
}

type AssetCoding = Coding | 'identity'

const ENCODERS: Readonly<Record<AssetCoding, (content: Buffer) => Promise<Buffer>>> = {
  br: promisify<Buffer, Buffer>(brotliCompress),
  gzip: promisify<Buffer, Buffer>(gzip),
  identity: async (content) => content,
}

/** A file in memory. Each coding is made when the first client asks for it. */
export class Asset {
  readonly #encoded = new Map<AssetCoding, Promise<Buffer>>()

  constructor(
    readonly type: string,
    content: Buffer,
    coding: AssetCoding,
  ) {
    this.#encoded.set(coding, Promise.resolve(content))
  }

  async encode(coding: AssetCoding): Promise<Buffer> {
    const known = this.#encoded.get(coding)
    if (known) return known
    const encoded = this.#decode().then(ENCODERS[coding])
    this.#encoded.set(coding, encoded)
    return encoded
  }

  async #decode(): Promise<Buffer> {
    const plain = await this.#encoded.get('identity')
    if (plain) return plain
    return promisify<Buffer, Buffer>(brotliDecompress)((await this.#encoded.get('br')) ?? Buffer.alloc(0))
  }
}

export interface AssetSet {
  /** Changes with the content of any file, so that browsers may cache files for ever under a path with it. */
  readonly version: string
  readonly files: ReadonlyMap<string, Asset>
}

/** Reads the files of folders. A name that ends with `.br` is that of a compressed file. */
export async function readAssets(folders: readonly string[]): Promise<AssetSet> {
  const files = new Map<string, Asset>()
  const version = createHash('sha256')
  for (const folder of folders)
    for (const entry of (await readdir(folder)).sort()) {
      const name = path.basename(entry, '.br')
      const type = TYPES[path.extname(name)]
      if (type === undefined) continue
      const content = await readFile(path.join(folder, entry))
      version.update(name).update(content)
      files.set(name, new Asset(type, content, entry === name ? 'identity' : 'br'))
    }
  return { version: version.digest('hex').slice(0, VERSION_CHARACTERS), files }
}

/** Returns a function that reads at its first call, and again after a failure. `missing` is the message about files that are not there. */
export function readAtFirstCall<T>(read: () => Promise<T>, missing: string): () => Promise<T> {
  let reading: Promise<T> | undefined
  return async () => {
    reading ??= read()
    try {
      return await reading
    } catch (error) {
      reading = undefined
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
        throw new VersoError('not-found', missing, { cause: error })
      throw error
    }
  }
}

/** Creates a file with a name that changes with its content, such as `verso-page-0f3a….css`. */
export function createAsset(name: string, content: string): readonly [name: string, asset: Asset] {
  const { name: stem, ext } = path.parse(name)
  const hash = createHash('sha256').update(content).digest('hex').slice(0, VERSION_CHARACTERS)
  return [`${stem}-${hash}${ext}`, new Asset(TYPES[ext] ?? '', Buffer.from(content), 'identity')]
}

export async function sendAsset(reply: FastifyReply, asset: Asset): Promise<SentReply> {
  const canCompress = reply.server.compressor !== null
  const accept = canCompress ? (reply.request.headers['accept-encoding'] ?? '') : ''
  const { coding = 'identity' } = chooseCoding(accept)
  const body = await asset.encode(coding)
  replaceHeader(reply, 'cache-control', CACHE_FOR_EVER)
  replaceHeader(reply, 'vary', 'Accept-Encoding')
  if (coding !== 'identity') setHeader(reply, 'content-encoding', coding)
  return sendBody(reply, asset.type, body)
}
