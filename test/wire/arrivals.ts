// Ways in which requests arrive: pipelined, in pieces, half-closed, in chunks, after errors, by HTTP/1.0.
import { RawConnection } from './raw-connection.js'
import { checkIdle, checkVersions, cutRandomly, type Scenario, type Write } from './storm-checks.js'
import { NOTES, requestBy, seen, sendAlone, type Client } from './storm-service.js'

/** Sends requests on one connection and compares each answer with the one to the same request alone, in order. */
async function compareInOrder(
  client: Client,
  requests: readonly string[],
  send: (connection: RawConnection, bytes: Buffer) => Promise<void>,
): Promise<string[]> {
  const alone: string[] = []
  for (const request of requests) alone.push(seen(await sendAlone(client.url, request)))
  const connection = await RawConnection.open(client.url)
  await send(connection, Buffer.from(requests.join('')))
  const answers = await connection.answers(requests.length)
  connection.close()
  return answers.flatMap((answer, index) =>
    seen(answer) === alone[index]
      ? []
      : [`answer ${index} is ${seen(answer).slice(0, 300)} and not ${alone[index]?.slice(0, 300) ?? ''}`],
  )
}

/** Reads and errors, whose answers do not depend on each other. */
async function idleRequests(client: Client): Promise<string[]> {
  const { service } = client
  const notes = [await service.createNote('one'), await service.createNote('two')]
  return [
    ...notes.map((note) => requestBy(client, `GET ${note}`)),
    requestBy(client, `GET ${NOTES}/999999`),
    requestBy(client, `POST ${notes[0] ?? ''}`, { data: [] }),
    requestBy(client, `GET ${service.large}`),
    requestBy(client, `POST ${notes[1] ?? ''}`, { data: { version: 0, nothing: 1 } }),
    requestBy(client, `POST ${notes[1] ?? ''}`, { data: { version: 7, title: 'stale' } }),
    requestBy(client, `PUT ${NOTES}`, { data: { title: null } }),
    requestBy(client, 'GET /nothing'),
    ...notes.map((note) => requestBy(client, `GET ${note}`)),
  ]
}

export const pipelinedReads: Scenario = async (client) =>
  compareInOrder(client, await idleRequests(client), async (connection, bytes) => {
    connection.write(bytes)
  })

export const pipelinedByteByByte: Scenario = async (client) =>
  compareInOrder(
    client,
    (await idleRequests(client)).filter((_, index) => index % 3 === 0),
    async (connection, bytes) => connection.writePieces(Array.from(bytes, (byte) => Buffer.of(byte))),
  )

export const randomPieces: Scenario = async (client) =>
  compareInOrder(client, await idleRequests(client), async (connection, bytes) =>
    connection.writePieces(cutRandomly(bytes)),
  )

/** Node closes a connection whose client has sent FIN. An answer that was not ready by then is lost, but none is wrong or cut. */
export const halfClosed: Scenario = async (client) => {
  const faults: string[] = []
  for (const request of await idleRequests(client)) {
    const alone = seen(await sendAlone(client.url, request))
    const connection = await RawConnection.open(client.url)
    connection.write(request)
    connection.halfClose()
    const answer = await connection.answer()
    if (answer && seen(answer) !== alone) faults.push(`${seen(answer)} and not ${alone}`)
    if ((await connection.rest()).length > 0) faults.push('a request is answered twice')
    connection.close()
  }
  return [...faults, ...(await checkIdle(client))]
}

/** After a body that is no JSON the connection is closed. */
export const closedAfterBadBody: Scenario = async (client) => {
  const path = await client.service.createNote()
  const connection = await RawConnection.open(client.url)
  connection.write(requestBy(client, `POST ${path}`, '{"data":{"version":'))
  const answer = await connection.answer()
  const next = requestBy(client, `GET ${path}`)
  connection.write(next)
  const behind = seen(await connection.answer())
  connection.close()
  const faults = answer?.status === 400 ? [] : [`a body that is no JSON is answered with ${seen(answer)}`]
  if (answer?.headers.connection !== 'close') faults.push('its answer does not close the connection')
  if (behind !== seen(undefined)) faults.push(`behind it comes ${behind}`)
  return [...faults, ...(await checkVersions(client, path, []))]
}

/** A connection stays usable after errors, one request after the other. */
export const reusedAfterErrors: Scenario = async (client) => {
  const requests = await idleRequests(client)
  const connection = await RawConnection.open(client.url)
  const faults: string[] = []
  for (const request of [...requests, ...requests]) {
    connection.write(request)
    const [answer, alone] = [seen(await connection.answer()), seen(await sendAlone(client.url, request))]
    if (answer !== alone) faults.push(`${answer.slice(0, 300)} and not ${alone.slice(0, 300)}`)
  }
  connection.close()
  return faults
}

/** Bodies in chunks, and with a request behind them in the same packet. */
export const chunkedBodies: Scenario = async (client) => {
  const path = await client.service.createNote()
  const acknowledged: Write[] = []
  const faults: string[] = []
  for (const sizes of [[1], [7, 3], [1_000]]) {
    const write = { path, version: acknowledged.length, title: `chunks of ${sizes.join()}` }
    const connection = await RawConnection.open(client.url)
    connection.write(inChunks(client, write, sizes) + requestBy(client, `GET ${NOTES}/999999`))
    const [first, second] = await connection.answers(2)
    connection.close()
    if (first?.status !== 200 || second?.status !== 404)
      faults.push(
        `a chunked body is answered with ${first?.status ?? 'nothing'}, ${second?.status ?? 'nothing'}`,
      )
    else acknowledged.push(write)
  }
  return [...faults, ...(await checkVersions(client, path, acknowledged))]
}

function inChunks(client: Client, { path, version, title }: Write, sizes: readonly number[]): string {
  const text = JSON.stringify({ data: { version, title } })
  const chunks: string[] = []
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1
    const chunk = text.slice(at, at + size)
    chunks.push(`${chunk.length.toString(16)}\r\n${chunk}\r\n`)
    at += size
  }
  const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }
  return requestBy(client, `POST ${path}`, undefined, headers) + `${chunks.join('')}0\r\n\r\n`
}

/** A client that waits for 100 before it sends the body. */
export const expectContinue: Scenario = async (client) => {
  const path = await client.service.createNote()
  const write = { path, version: 0, title: 'expected' }
  const request = requestBy(
    client,
    `POST ${path}`,
    { data: { version: 0, title: write.title } },
    { expect: '100-continue' },
  )
  const bodyAt = request.indexOf('\r\n\r\n') + 4
  const connection = await RawConnection.open(client.url)
  connection.write(request.slice(0, bodyAt))
  const first = await connection.answer()
  connection.write(request.slice(bodyAt) + requestBy(client, `GET ${NOTES}/999999`))
  const [second, third] = await connection.answers(2)
  connection.close()
  const told = [first, second, third].map((answer) => answer?.status).join()
  return told === '100,200,404' ? checkVersions(client, path, [write]) : [`the answers are ${told}`]
}

/** HTTP/1.0: the connection ends after the answer, unless the client asks to keep it. */
export const oldProtocol: Scenario = async (client) => {
  const path = await client.service.createNote()
  const read = requestBy(client, `GET ${path}`)
  const alone = seen(await sendAlone(client.url, read))
  const faults: string[] = []
  for (const connectionHeader of ['close', 'keep-alive']) {
    const connection = await RawConnection.open(client.url)
    const old = requestBy(client, `GET ${path}`, undefined, { connection: connectionHeader }).replace(
      'HTTP/1.1',
      'HTTP/1.0',
    )
    connection.write(old)
    const answer = seen(await connection.answer())
    if (answer !== alone) faults.push(`HTTP/1.0 is answered with ${answer} and not ${alone}`)
    if (connectionHeader === 'keep-alive') connection.write(old)
    const after = await connection.answer()
    const isRight = connectionHeader === 'close' ? after === undefined : seen(after) === alone
    if (!isRight) faults.push(`after ${connectionHeader} comes ${seen(after)}`)
    connection.close()
  }
  return faults
}
