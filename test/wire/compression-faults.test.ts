// Compressed responses that are large, fail, or lose their client: no response is lost, and nothing is left behind.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Compressor } from '../../src/http/response/compressor.js'
import type { Server } from '../../src/http/server.js'
import { onEveryEngine, type Service } from '../targets.js'
import { restOf } from './aborts.js'
import {
  accept,
  CodedService,
  CONTACT,
  LIST,
  MEMORY_BYTES,
  MIN_BYTES,
  type CodedAnswer,
} from './coded-exchange.js'
import { only, rawRequest, withServer, type User } from './exchange.js'
import { RawConnection } from './raw-connection.js'

onEveryEngine((engine) => {
  let coded: CodedService
  let service: Service
  let user: User
  let cookie: string
  let id: number

  beforeAll(async () => {
    coded = await CodedService.start(engine)
    ;({ service, user, cookie, id } = coded)
  })
  afterAll(() => service.close())

  const ask: CodedService['ask'] = (path, sent, url) => coded.ask(path, sent, url)

  describe('large and streamed responses', () => {
    test.for(['br', 'gzip'])('a page in a file is compressed as a stream: %s', async (coding) => {
      for (let count = 0; count < 2; count++)
        await user.create(CONTACT, { notes: `${'Größe '.repeat(9_000)} ${count}` })
      const path = `${LIST}?fields=notes&sortBy=-id&limit=3`
      const plain = await ask(path)
      expect(plain.bytes.length).toBeGreaterThan(MEMORY_BYTES)
      const answer = await ask(path, accept(coding))
      expect([answer.headers['content-encoding'], answer.headers['content-length']]).toEqual([
        coding,
        undefined,
      ])
      expect(answer.text).toBe(plain.text)
      const head = await ask(path, { ...accept(coding), method: 'HEAD' })
      expect([head.status, head.headers['content-encoding'], head.bytes.length]).toEqual([200, coding, 0])
      expect(await restOf(service.server)).toEqual({})
    })

    test.for(['br', 'gzip'])('an export is compressed if it is large: %s', async (coding) => {
      const path = `${LIST}/export`
      const sent = { method: 'POST', headers: { 'accept-encoding': coding } }
      const body = { fields: ['id', 'notes'] }
      const plain = await ask(path, { method: 'POST', body })
      const answer = await ask(path, { ...sent, body })
      expect([answer.status, answer.headers['content-encoding']], answer.text).toEqual([200, coding])
      expect(answer.text).toBe(plain.text)
      const few = await ask(path, { ...sent, body: { ...body, data: { _domain: 'id < 5 and id > 1' } } })
      expect([few.status, few.headers['content-encoding']]).toEqual([200, undefined])
      expect(few.text.trim().split('\n')).toHaveLength(4)
    })
  })

  describe('faults', () => {
    class FailingCompressor extends Compressor {
      override async compress(): Promise<never> {
        return Promise.reject(new Error('no memory'))
      }

      override openStream(): undefined {
        return undefined
      }
    }
    const breakCompressor = ({ fastify }: Server) => {
      Object.defineProperty(fastify, 'compressor', { value: new FailingCompressor() })
    }

    test('a write whose response cannot be compressed is answered uncompressed, once', async () => {
      await withServer(service, {}, async (url, server) => {
        breakCompressor(server)
        const { id: own } = only(await user.create(CONTACT, { notes: 'n'.repeat(MIN_BYTES) }))
        const sent = { method: 'POST', body: { data: { version: 0 } }, headers: { 'accept-encoding': 'br' } }
        const { status, headers, text } = await ask(`${LIST}/${own}`, sent, url)
        expect([status, headers['content-encoding']], text).toEqual([200, undefined])
        expect(JSON.parse(text)).toMatchObject({ status: 0, data: [{ id: own, version: 1 }] })
        expect(headers.etag).toBe((await ask(`${LIST}/${own}`)).headers.etag)
      })
    })

    test('a page and an export that cannot be compressed are sent uncompressed', async () => {
      await withServer(service, {}, async (url, server) => {
        breakCompressor(server)
        const sent = { method: 'POST', body: {}, headers: { 'accept-encoding': 'br' } }
        for (const answer of [
          await ask(`${LIST}?limit=300`, accept('br'), url),
          await ask(`${LIST}?fields=notes`, accept('br'), url),
          await ask(`${LIST}/export`, sent, url),
        ])
          expect([answer.status, answer.headers['content-encoding']]).toEqual([200, undefined])
      })
    })

    test('a client that disconnects leaves nothing behind', async () => {
      for (const path of [`${LIST}?limit=300`, `${LIST}/${id}`, `${LIST}?fields=notes`])
        for (const wait of [0, 1, 2]) {
          const connection = await RawConnection.open(service.url)
          connection.write(rawRequest(`GET ${path} HTTP/1.1`, { cookie, 'accept-encoding': 'br' }).repeat(3))
          for (let turn = 0; turn < wait; turn++) await new Promise(setImmediate)
          connection.reset()
        }
      expect(await restOf(service.server)).toEqual({})
    })

    test('pipelined requests are answered in their order', async () => {
      const connection = await RawConnection.open(service.url)
      const request = (path: string) =>
        rawRequest(`GET ${path} HTTP/1.1`, { cookie, connection: 'keep-alive', 'accept-encoding': 'gzip' })
      const paths = [`${LIST}?limit=300`, `${LIST}?limit=1`, `${LIST}/${id}`, `${LIST}/999999`]
      connection.write(paths.map(request).join(''))
      const answers = await connection.answers(paths.length)
      expect(answers.map((answer) => [answer?.status, answer?.headers['content-encoding']])).toEqual([
        [200, 'gzip'],
        [200, undefined],
        [200, 'gzip'],
        [404, undefined],
      ])
      connection.close()
    })

    test('a shutdown waits for a response that is being compressed', async () => {
      let answer: Promise<CodedAnswer> | undefined
      await withServer(service, {}, async (url, server) => {
        const arrived = new Promise((resolve) => server.fastify.server.once('request', resolve))
        answer = ask(`${LIST}?limit=300`, accept('br'), url)
        await arrived
      })
      expect((await answer)?.headers['content-encoding']).toBe('br')
      expect(JSON.parse((await answer)?.text ?? '')).toMatchObject({ status: 0 })
    })
  })
})
