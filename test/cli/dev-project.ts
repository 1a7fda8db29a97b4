// A folder of models that `verso dev` serves while a test edits it.
import { mkdirSync, mkdtempSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EventReader } from '../feed.js'
import { HttpClient } from '../http-client.js'
import { scratch, start } from './program.js'

export type DevProcess = Awaited<ReturnType<typeof start>>

export class DevProject {
  readonly folder = mkdtempSync(path.join(scratch, 'dev-'))
  readonly models = path.join(this.folder, 'models')
  #edits = 0

  constructor() {
    mkdirSync(this.models)
  }

  write(name: string, text: string): void {
    const file = path.join(this.folder, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
  }

  /** Saves a file as many editors do: writes another one and renames it. */
  replace(name: string, text: string): void {
    const other = `.${++this.#edits}.swp`
    this.write(other, text)
    renameSync(path.join(this.folder, other), path.join(this.folder, name))
  }
}

/** A script with one model. */
export function defineScript(name: string, fields: string, imports = ''): string {
  return `import { defineModel } from 'verso-records'\n${imports}\nexport const Model = defineModel({ name: '${name}', fields: { ${fields} } })\n`
}

export interface ReloadReport {
  readonly isReloaded: boolean
  /** The text since the edit. */
  readonly stdout: string
  readonly stderr: string
}

/** Edits files and waits until the process has reported the reload. */
export async function reload(dev: DevProcess, edit: () => unknown): Promise<ReloadReport> {
  const [outputLength, logLength] = [dev.output().length, dev.log().length]
  await edit()
  for (;;) {
    const stdout = dev.output().slice(outputLength)
    const result = /^(not reloaded|reloaded in \d+ ms)/m.exec(stdout)?.[1]
    if (result !== undefined)
      return { isReloaded: result !== 'not reloaded', stdout, stderr: dev.log().slice(logLength) }
    if (dev.child.exitCode !== null) throw new Error(`it ended: ${dev.log()}`)
    await sleep(10)
  }
}

/** Creates records of a model one after the other. Rejects if a request is not answered with 200. */
export class Writer {
  readonly created: number[] = []
  readonly ended: Promise<void>
  #isStopped = false

  constructor(client: HttpClient, model: string) {
    this.ended = this.#run(client, model)
    this.ended.catch(() => undefined)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.ended
  }

  async #run(client: HttpClient, model: string): Promise<void> {
    while (!this.#isStopped) {
      const { data } = await client.create(model, { text: `note ${this.created.length}` })
      this.created.push(data.id)
      // Leaves time for the service and its reloads.
      await sleep(10)
    }
  }
}

/** Follows the creates of a model by an event stream, and resumes it whenever it ends. */
export class Follower {
  readonly seen: number[] = []
  streams = 0
  #isStopped = false
  #reader: EventReader | undefined
  readonly #ended: Promise<void>

  constructor(client: HttpClient, model: string) {
    this.#ended = this.#run(client, model)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#reader?.close()
    await this.#ended.catch((error: unknown) => {
      if (!(error instanceof Error && error.name === 'AbortError')) throw error
    })
  }

  async #run(client: HttpClient, model: string): Promise<void> {
    for (let last = ''; !this.#isStopped; last = this.#reader.lastId) {
      const resumed = last === '' ? {} : { 'last-event-id': last }
      this.#reader = new EventReader(client, `since=0&model=${model}`, resumed)
      this.streams++
      for await (const { event, data } of this.#reader.events())
        if (event === 'change') this.seen.push((JSON.parse(data) as { id: number }).id)
    }
  }
}

export async function login(dev: DevProcess): Promise<HttpClient> {
  return HttpClient.login(dev.url, 'admin', 'admin')
}
