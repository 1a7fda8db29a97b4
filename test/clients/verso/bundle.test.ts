import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { bundleClient, findBundleFaults } from '../../../scripts/check-client-size.mjs'

test('the bundle of the client fits, and needs neither Node nor packages nor the rest of the service', async () => {
  const bundle = await bundleClient()
  expect(findBundleFaults(bundle)).toEqual([])
  expect(bundle.code).toContain('idempotency-key')
})

test('a bundle that is too large, or imports something, is a fault', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-bundle-'))
  try {
    const entry = path.join(folder, 'entry.js')
    writeFileSync(entry, `export { readFileSync } from 'node:fs'\nexport { fastify } from 'fastify'\n`)
    const faults = findBundleFaults(await bundleClient(entry))
    expect(faults).toEqual([
      'The client imports node:fs, which a page does not have',
      'The client imports fastify, which a page does not have',
      expect.stringMatching(/^The client contains .*entry\.js, which is not in src\/client$/),
    ])
    expect(findBundleFaults({ imports: [], modules: [], gzipBytes: 12_001 })).toEqual([
      'The client has 12001 bytes (gzip), at most 12000',
    ])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
