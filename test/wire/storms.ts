// Writes that arrive in pieces, pipelined or broken off, alone and in storms.
import { RawConnection } from './raw-connection.js'
import {
  checkIdle,
  checkVersions,
  checkWritten,
  cutRandomly,
  waitForRequest,
  type Scenario,
  type Write,
} from './storm-checks.js'
import { NOTES, requestBy, seen, updateBy, type Client } from './storm-service.js'

/** Pipelined updates: each answer belongs to its request, and the acknowledged ones are in the record, once each. */
export const pipelinedWrites: Scenario = async (client) => {
  const { service } = client
  const shared = await service.createNote()
  const own = await Promise.all(Array.from({ length: 4 }, () => service.createNote()))
  const sharedWrites = Array.from({ length: 5 }, (_, index) => ({
    path: shared,
    version: index,
    title: `shared ${index}`,
  }))
  const ownWrites = own.map((path, index) => ({ path, version: 0, title: `own ${index}` }))
  const writes = sharedWrites.flatMap((write, index) => [write, ...ownWrites.slice(index, index + 1)])
  const reads = [requestBy(client, `GET ${NOTES}/999999`), requestBy(client, `GET ${service.large}`)]
  const connection = await RawConnection.open(client.url)
  const requests = writes.map(({ path, version, title }) => updateBy(client, path, version, title))
  connection.write([...requests.slice(0, 4), ...reads, ...requests.slice(4)].join(''))
  const answers = await connection.answers(requests.length + reads.length)
  connection.close()
  const statuses = answers.splice(4, reads.length).map((answer) => answer?.status)
  const faults =
    statuses.join() === '404,200' ? [] : [`reads among writes are answered with ${statuses.join()}`]
  for (const [index, write] of writes.entries()) {
    const answer = answers[index]
    const isOwn = own.includes(write.path)
    if (answer?.status !== 200 && (isOwn || answer?.status !== 409))
      faults.push(`write ${index} is answered with ${answer?.status ?? 'nothing'}`)
    if (answer?.status === 200) faults.push(...checkWritten(answer, write))
  }
  for (const path of [shared, ...own]) {
    const acknowledged = writes.filter(
      (write, index) => write.path === path && answers[index]?.status === 200,
    )
    faults.push(...(await checkVersions(client, path, acknowledged)))
  }
  return faults
}

/** Updates that arrive in two pieces, cut at each of these places. */
export async function splitUpdates(client: Client, every: number): Promise<string[]> {
  const path = await client.service.createNote()
  const acknowledged: Write[] = []
  const faults: string[] = []
  const connection = await RawConnection.open(client.url)
  const { length } = updateBy(client, path, 1, 'title 0000')
  for (let at = 1; at < length; at += every) {
    const version = acknowledged.length
    const write = { path, version, title: `title ${String(at).padStart(4, '0')}` }
    const bytes = Buffer.from(updateBy(client, path, version, write.title))
    await connection.writePieces([bytes.subarray(0, at), bytes.subarray(at)])
    const answer = await connection.answer()
    if (answer?.status !== 200)
      faults.push(`the update cut at ${at} is answered with ${answer?.status ?? 'nothing'}`)
    else acknowledged.push(write)
  }
  connection.close()
  return [...faults, ...(await checkVersions(client, path, acknowledged))]
}

function writeSized(client: Client, path: string, more: number): string {
  const body = JSON.stringify({ data: { version: 0, title: 'wrong length' } })
  return requestBy(client, `POST ${path}`, body, { 'content-length': String(body.length + more) })
}

/** A body that is longer than its header says is cut, and its rest is no request. */
export const tooLongBodies: Scenario = async (client) => {
  const path = await client.service.createNote()
  const connection = await RawConnection.open(client.url)
  connection.write(writeSized(client, path, -1))
  const statuses = (await connection.rest()).map(({ status }) => status)
  connection.close()
  const faults = statuses.every((status) => status === 400)
    ? []
    : [`a body behind its length is answered with ${statuses.join()}`]
  const { version } = await client.service.readNote(path)
  return version === 0 ? faults : [...faults, 'a body that was cut was written']
}

/** A body that ends before its length is never written, even if the part that came is valid. */
export const unfinishedBodies: Scenario = async (client) => {
  const path = await client.service.createNote()
  const faults: string[] = []
  for (const leave of ['halfClose', 'reset'] as const) {
    const connection = await RawConnection.open(client.url)
    connection.write(writeSized(client, path, 1))
    await waitForRequest(client)
    connection[leave]()
    const answers = leave === 'halfClose' ? await connection.rest() : []
    if (answers.some(({ status }) => status < 400))
      faults.push('an unfinished body is answered as a whole one')
    connection.close()
    faults.push(...(await checkIdle(client)))
  }
  const { version } = await client.service.readNote(path)
  return version === 0 ? faults : [...faults, 'an unfinished body was written']
}

/** Stages at which a client gives up: the share of the request that it sends, and whether it waits for the answer. */
const STAGES = {
  headers: (bytes: Buffer) => bytes.subarray(0, Math.floor(bytes.indexOf('\r\n\r\n') / 2)),
  body: (bytes: Buffer) => bytes.subarray(0, bytes.indexOf('\r\n\r\n') + 4 + 10),
  handler: (bytes: Buffer) => bytes,
} as const

/** A client that disconnects at any stage leaves nothing behind, and its write happened wholly or not at all. */
export const aborts: Scenario = async (client) => {
  const { service } = client
  const path = await service.createNote()
  const faults: string[] = []
  for (const [stage, cut] of Object.entries(STAGES)) {
    for (const leave of ['reset', 'close', 'halfClose'] as const) {
      const { version } = await service.readNote(path)
      const title = `aborted ${stage} ${leave}`
      const connection = await RawConnection.open(client.url)
      connection.write(cut(Buffer.from(updateBy(client, path, version, title))))
      if (stage !== 'handler') await waitForRequest(client)
      else if (leave !== 'halfClose') await new Promise(setImmediate)
      connection[leave]()
      if (leave === 'halfClose') await connection.rest()
      connection.close()
      faults.push(...(await checkIdle(client)).map((fault) => `${title}: ${fault}`))
      const after = await service.readNote(path)
      const mayBeWritten = stage === 'handler'
      const isWritten = after.version === version + 1 && after.title === title
      if (after.version !== version && !(mayBeWritten && isWritten))
        faults.push(`${title}: the record is ${JSON.stringify(after)}`)
    }
  }
  return [...faults, ...(await abortWhileReading(client))]
}

async function abortWhileReading(client: Client): Promise<string[]> {
  const connection = await RawConnection.open(client.url)
  connection.write(requestBy(client, `GET ${client.service.large}`).repeat(20))
  await connection.bytes()
  connection.reset()
  return checkIdle(client)
}

/** Creates that arrive in pieces or pipelined are made once each. */
export const createsOnce: Scenario = async (client) => {
  const { service } = client
  const titles = Array.from({ length: 6 }, (_, index) => `made by ${client.kind} ${index} ${Math.random()}`)
  const connection = await RawConnection.open(client.url)
  const bytes = Buffer.from(
    titles.map((title) => requestBy(client, `PUT ${NOTES}`, { data: { title } })).join(''),
  )
  await connection.writePieces(cutRandomly(bytes))
  const answers = await connection.answers(titles.length)
  connection.close()
  const faults: string[] = []
  for (const [index, title] of titles.entries()) {
    const count = await service.countNotes(title)
    if (answers[index]?.status !== 200 || !answers[index].text.includes(title))
      faults.push(`the create of ${title} is answered with ${seen(answers[index])}`)
    if (count !== 1) faults.push(`${title} was made ${count} times`)
  }
  return faults
}

type Delivery = (connection: RawConnection, bytes: Buffer) => Promise<void>

/** Ways to send an update; only the last ones may leave without an answer. */
const DELIVERIES: readonly Delivery[] = [
  async (connection, bytes) => connection.write(bytes),
  async (connection, bytes) => connection.writePieces(cutRandomly(bytes)),
  async (connection, bytes) => {
    connection.write(bytes)
    connection.halfClose()
  },
  async (connection, bytes) => {
    connection.write(bytes)
    await new Promise(setImmediate)
    connection.reset()
  },
  async (connection, bytes) => {
    connection.write(bytes.subarray(0, Math.floor(Math.random() * bytes.length)))
    connection.reset()
  },
]

/** Clients that update the same records in all these ways at the same time. */
export async function storm(clients: readonly Client[], updates: number): Promise<string[]> {
  const [first] = clients
  if (!first) return ['there are no clients']
  const paths = await Promise.all([1, 2, 3].map(() => first.service.createNote()))
  const acknowledged: Write[] = []
  const unknown: string[] = []
  const faults: string[] = []
  const run = async (client: Client) => {
    for (let turn = 0; turn < updates; turn++) {
      const path = paths[Math.floor(Math.random() * paths.length)] ?? ''
      const { version } = await client.service.readNote(path)
      const write = { path, version, title: `${client.kind} ${turn} ${Math.random()}` }
      const deliver = DELIVERIES[Math.floor(Math.random() * DELIVERIES.length)]
      const connection = await RawConnection.open(client.url)
      await deliver?.(connection, Buffer.from(updateBy(client, path, version, write.title)))
      const answer = await connection.answer()
      connection.close()
      if (answer?.status === 200) acknowledged.push(write)
      else if (!answer) unknown.push(write.title)
      else if (answer.status !== 409) faults.push(`an update is answered with ${answer.status}`)
    }
  }
  await Promise.all(clients.map(run))
  for (const client of clients) faults.push(...(await checkIdle(client)))
  for (const path of paths) {
    const own = acknowledged.filter((write) => write.path === path)
    faults.push(...(await checkVersions(first, path, own, unknown)))
  }
  return faults
}
