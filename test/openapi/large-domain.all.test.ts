// The OpenAPI document of 800 models: time, memory, and how long it blocks other requests.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadModelsWithReport } from '../../src/cli/models/models.js'
import { HttpClient } from '../http-client.js'
import { LARGE, writeLargeDomain } from '../large-domain.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { ApiDocument, type Document } from './api-document.js'

const ENTITIES = 800
const MAX_SECONDS = 2
const MAX_MEGABYTES = 100

let folder: string
let service: Service
let client: HttpClient

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'verso-openapi-'))
  writeLargeDomain(folder, { ...LARGE, entities: ENTITIES })
  const { sources } = await loadModelsWithReport(folder)
  service = await startService('sqlite', { models: sources, isNew: true })
  client = await HttpClient.login(service.url, USERNAME, PASSWORD)
}, 300_000)

afterAll(async () => {
  await service.close()
  rmSync(folder, { recursive: true })
})

const collectGarbage = (): void => {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
}

function usedBytes(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function request(): Promise<Response> {
  return client.request('GET', '/ws/openapi.json', undefined, { 'accept-encoding': 'identity' })
}

test(
  `a document of ${ENTITIES} models takes at most ${MAX_SECONDS} s and ${MAX_MEGABYTES} MB`,
  { timeout: 120_000 },
  async () => {
    collectGarbage()
    const before = usedBytes()
    let peak = before
    const sampler = setInterval(() => {
      peak = Math.max(peak, usedBytes())
    }, 20)
    const delays = monitorEventLoopDelay({ resolution: 10 })
    delays.enable()
    const cpu = process.cpuUsage()
    const start = performance.now()
    // The body is read later, because the client of the test has its own memory.
    const response = await request()
    const seconds = (performance.now() - start) / 1_000
    const { user, system } = process.cpuUsage(cpu)
    const cpuSeconds = (user + system) / 1e6
    peak = Math.max(peak, usedBytes())
    clearInterval(sampler)
    delays.disable()
    const text = await response.text()
    const megabytes = (peak - before) / 1e6
    console.log(
      `${ENTITIES} models: ${(text.length / 1e6).toFixed(1)} MB in ${seconds.toFixed(2)} s (${cpuSeconds.toFixed(2)} s of CPU), memory +${megabytes.toFixed(0)} MB, longest pause ${(delays.max / 1e6).toFixed(0)} ms`,
    )
    // CPU time, because other programs may use the processors, too.
    expect(cpuSeconds).toBeLessThan(MAX_SECONDS)
    expect(megabytes).toBeLessThan(MAX_MEGABYTES)
    const api = new ApiDocument(JSON.parse(text) as Document)
    expect(api.danglingRefs).toEqual([])
    expect(api.document.tags.length).toBeGreaterThan(ENTITIES)

    const again = process.cpuUsage()
    await (await request()).arrayBuffer()
    const { user: secondUser } = process.cpuUsage(again)
    expect(secondUser).toBeLessThan(user)
  },
)
