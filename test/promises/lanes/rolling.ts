// Rolling restarts of three nodes on PostgreSQL behind HAProxy, under load.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres } from '../../postgres.js'
import { checkWrites } from '../checked.js'
import type { Lane, LaneOptions, PromiseRow } from '../lane.js'
import { countServerErrors, describeAnswers } from '../numbers.js'
import { Recorder, writeDuring } from '../recorder.js'
import { findFreePort, HttpTarget, ServiceProcess } from '../service-process.js'

const ROLLS = 5
const NODES = 3
const WRITERS = 8
const READERS = 12
const MIN_RATE = 300
const DRAIN_S = 3
const POLL_MS = 100
const PATH = `${process.env['PATH'] ?? ''}:/usr/sbin`

const ROLL_BAR = `${ROLLS} rolling restarts of ${NODES} nodes behind HAProxy at ${MIN_RATE} requests/s or more: no failed request`
const WRITES_BAR = `${ROLLS} rolling restarts: nothing lost or stored twice`

export const rollingLane: Lane = {
  name: 'rolling',
  description: `Each node in turn: SIGTERM with --drain ${DRAIN_S}s, start, wait until HAProxy uses it. HAProxy repeats only connections that were refused.`,
  minutes: 6,
  bars: [ROLL_BAR, WRITES_BAR],
  needs: 'the Debian package haproxy',
  findObstacle: () =>
    spawnSync('haproxy', ['-v'], { env: { ...process.env, PATH } }).status === 0
      ? undefined
      : 'haproxy is not installed: apt-get install haproxy',
  run: async (options) => roll(options),
}

async function roll(options: LaneOptions): Promise<PromiseRow[]> {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-promise-'))
  const postgres = await startPostgres({ durable: true })
  const nodes: ServiceProcess[] = []
  const flags = ['--drain', `${DRAIN_S}s`, '--trust-proxy', 'loopback']
  let proxy: Awaited<ReturnType<typeof startHaproxy>> | undefined
  try {
    for (let i = 0; i < NODES; i++) nodes.push(await ServiceProcess.start({ db: postgres.url, flags }))
    proxy = await startHaproxy(
      folder,
      nodes.map(({ port }) => port),
    )
    const target = new HttpTarget(proxy.url)
    await waitUntilReady(target)
    await target.login()
    const recorder = new Recorder()
    const rolls = Math.ceil(ROLLS * options.scale)
    let wrongExits = 0
    let seconds = 0
    await writeDuring({ recorder, targets: [target], writers: WRITERS, readers: READERS }, async () => {
      const startMs = performance.now()
      for (let index = 0; index < rolls * NODES; index++) {
        const node = nodes[index % NODES]
        if ((await node?.end('SIGTERM')) !== 0) wrongExits++
        await node?.start()
        await sleep(2_000)
        if (index % NODES === NODES - 1)
          options.log(`${(index + 1) / NODES} rolls: ${describeAnswers(recorder.answers)}`)
      }
      seconds = (performance.now() - startMs) / 1_000
    })
    const count = [...recorder.answers.values()].reduce((sum, each) => sum + each, 0)
    const rate = count / seconds
    const failed =
      (recorder.answers.get('lost') ?? 0) +
      (recorder.answers.get('not connected') ?? 0) +
      countServerErrors(recorder.answers)
    const [node] = nodes
    if (!node) throw new Error('there is no node')
    const faults = `${rolls} rolls`
    const writes = await checkWrites({ recorder, target: node.target, bar: WRITES_BAR, faults }, options)
    target.close()
    return [
      {
        bar: ROLL_BAR,
        measured: `${rolls} rolls in ${Math.round(seconds)} s at ${Math.round(rate)} requests/s, reads and writes: ${failed} failed requests of ${count.toLocaleString('en')}, ${wrongExits} exit codes other than 0`,
        isHeld: failed === 0 && wrongExits === 0 && rate >= MIN_RATE && rolls >= ROLLS,
      },
      { ...writes, isHeld: writes.isHeld && rolls >= ROLLS },
    ]
  } finally {
    proxy?.stop()
    for (const node of nodes) await node.close()
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The backend has the lines of deploy/haproxy.cfg that matter for a restart. */
async function startHaproxy(
  folder: string,
  ports: readonly number[],
): Promise<{ readonly url: string; readonly stop: () => void }> {
  const port = await findFreePort()
  const file = path.join(folder, 'haproxy.cfg')
  const text = `defaults
    mode http
    timeout connect 3s
    timeout http-request 10s
    timeout http-keep-alive 60s
    timeout client 60s
    timeout server 60s
    retries 3
    retry-on conn-failure
    option redispatch 1
frontend records
    bind 127.0.0.1:${port}
    default_backend nodes
backend nodes
    balance leastconn
    option httpchk GET /readyz
    http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost
    http-check expect status 200
    timeout check 2s
    default-server check inter 1s fastinter 500ms downinter 1s fall 2 rise 1
${ports.map((each, index) => `    server node${index} 127.0.0.1:${each}`).join('\n')}
`
  writeFileSync(file, text)
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore', env: { ...process.env, PATH } })
  return { url: `http://127.0.0.1:${port}`, stop: () => child.kill('SIGKILL') }
}

async function waitUntilReady(target: HttpTarget): Promise<void> {
  for (;;) {
    const answer = await target.send('GET', '/readyz').catch(() => undefined)
    if (answer?.status === 200) return
    await sleep(POLL_MS)
  }
}
