// Reads the WAL file of a database without SQLite. SQLite ignores a WAL whose header is damaged, and all commits after a damaged frame. The
// format: https://www.sqlite.org/fileformat2.html#walformat
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { isFileMissing } from '../../engine/file-errors.js'

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
const MAGIC_LITTLE_ENDIAN = 0x377f0682
const MAGIC_BIG_ENDIAN = 0x377f0683
const FORMAT_VERSION = 3_007_000
/** A longer WAL is checked up to here, so that a start stays short. */
const MAX_CHECKED_BYTES = 64 * 1024 * 1024

export type WalState = 'missing' | 'empty' | 'readable' | 'unreadable' | 'damaged'

export function readWalSize(file: string): number {
  return statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
}

/** Opening and closing the WAL is safe: the locks of SQLite are on the other files. */
export function inspectWal(file: string, mustCheckFrames = true): WalState {
  let descriptor: number
  try {
    descriptor = openSync(`${file}-wal`, 'r')
  } catch (error) {
    if (isFileMissing(error)) return 'missing'
    throw error
  }
  try {
    const { size } = fstatSync(descriptor)
    if (size === 0) return 'empty'
    const header = readWalHeader(descriptor)
    if (!header) return 'unreadable'
    return !mustCheckFrames || areFramesComplete(descriptor, header, size) ? 'readable' : 'damaged'
  } finally {
    closeSync(descriptor)
  }
}

interface WalHeader {
  readonly pageBytes: number
  readonly isBigEndian: boolean
  /** Both salts. Frames with other salts are older than the header. */
  readonly salts: string
  readonly checksum: Checksum
}

type Checksum = readonly [number, number]

function readWalHeader(descriptor: number): WalHeader | undefined {
  const bytes = Buffer.alloc(HEADER_BYTES)
  if (readSync(descriptor, bytes, 0, HEADER_BYTES, 0) < HEADER_BYTES) return undefined
  const magic = bytes.readUInt32BE(0)
  if (magic !== MAGIC_LITTLE_ENDIAN && magic !== MAGIC_BIG_ENDIAN) return undefined
  const isBigEndian = magic === MAGIC_BIG_ENDIAN
  const checksum = addToChecksum([0, 0], bytes.subarray(0, 24), isBigEndian)
  const isValid = bytes.readUInt32BE(4) === FORMAT_VERSION && isEqualChecksum(checksum, bytes, 24)
  if (!isValid) return undefined
  return { pageBytes: bytes.readUInt32BE(8), isBigEndian, salts: bytes.toString('hex', 16, 24), checksum }
}

/**
 * False if a frame is damaged and two later frames are commits. Each commit is synced before the next transaction writes, so the first of
 * the two was complete once. A power cut can leave a damaged frame, too, but only in the last transaction.
 */
function areFramesComplete(descriptor: number, header: WalHeader, size: number): boolean {
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + header.pageBytes)
  const end = Math.min(size, MAX_CHECKED_BYTES)
  let { checksum } = header
  let isIntact = true
  let commitsAfterDamage = 0
  for (let offset = HEADER_BYTES; offset + frame.length <= end; offset += frame.length) {
    if (readSync(descriptor, frame, 0, frame.length, offset) < frame.length) break
    const isCurrent = frame.toString('hex', 8, 16) === header.salts
    if (isIntact) {
      checksum = addToChecksum(checksum, frame.subarray(0, 8), header.isBigEndian)
      checksum = addToChecksum(checksum, frame.subarray(FRAME_HEADER_BYTES), header.isBigEndian)
      isIntact = isCurrent && isEqualChecksum(checksum, frame, 16)
    }
    const isCommit = frame.readUInt32BE(4) !== 0
    if (!isIntact && isCurrent && isCommit) commitsAfterDamage++
    if (commitsAfterDamage > 1) return false
  }
  return true
}

function addToChecksum([first, second]: Checksum, bytes: Buffer, isBigEndian: boolean): Checksum {
  let [a, b] = [first, second]
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let offset = 0; offset < bytes.length; offset += 8) {
    a = (a + view.getUint32(offset, !isBigEndian) + b) >>> 0
    b = (b + view.getUint32(offset + 4, !isBigEndian) + a) >>> 0
  }
  return [a, b]
}

function isEqualChecksum([first, second]: Checksum, bytes: Buffer, offset: number): boolean {
  return first === bytes.readUInt32BE(offset) && second === bytes.readUInt32BE(offset + 4)
}
