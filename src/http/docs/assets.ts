// The files of the API reference: the page's own ones, and Swagger UI, which the build copies from its package and compresses.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, brotliDecompress, gzip } from 'node:zlib'
import { VersoError } from '../../errors.js'
import type { Coding } from '../response/content-coding.js'

const PAGE_FOLDER = fileURLToPath(new URL('./page/', import.meta.url))
/** src/http/docs and dist/http/docs have the same depth, so this path leads to the build from both. */
const SWAGGER_UI_FOLDER = fileURLToPath(new URL('../../../dist/http/docs/swagger-ui/', import.meta.url))
const VERSION_CHARACTERS = 16

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
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

export async function readAssets(): Promise<AssetSet> {
  const files = new Map<string, Asset>()
  const hash = createHash('sha256')
  for (const file of [...(await listFiles(PAGE_FOLDER)), ...(await listFiles(SWAGGER_UI_FOLDER))]) {
    const isCompressed = file.endsWith('.br')
    const name = path.basename(file, '.br')
    const type = TYPES[path.extname(name)]
    if (type === undefined) continue
    const content = await readFile(file)
    hash.update(name).update(content)
    files.set(name, new Asset(type, content, isCompressed ? 'br' : 'identity'))
  }
  return { version: hash.digest('hex').slice(0, VERSION_CHARACTERS), files }
}

async function listFiles(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort().map((name) => path.join(folder, name))
  } catch (error) {
    const message = 'The API reference is not built: run npm run build in the checkout of the service'
    throw new VersoError('not-found', message, { cause: error })
  }
}
