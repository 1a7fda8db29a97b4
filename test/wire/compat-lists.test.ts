// Lists and forms of existing clients, with and without --compat: two servers on one database.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROTOCOLS } from '../../src/http/compat/axelor.js'
import { cleanDomainContext } from '../../src/http/compat/axelor-in-lists.js'
import { MAX_TERMS } from '../../src/model/query/condition.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { HttpClient } from '../http-client.js'
import { onEveryEngine, PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { openSession } from './exchange.js'

const PEOPLE = '/ws/rest/rel.Person'
const FILES = '/ws/rest/com.axelor.meta.db.MetaFile'

interface Body {
  readonly status: number
  readonly data: readonly { readonly id: number; readonly name: string | null }[]
}

onEveryEngine((engine) => {
  let strict: Service
  let loose: Service
  let contract: HttpClient
  let axelor: HttpClient
  let ids: readonly number[]

  beforeAll(async () => {
    strict = await startService(engine)
    loose = await startService(engine, { location: strict.location, http: { compat: 'axelor' } })
    contract = await HttpClient.login(strict.url, USERNAME, PASSWORD)
    axelor = await HttpClient.login(loose.url, USERNAME, PASSWORD)
    const company = { name: 'Co', code: 'CO' }
    const people = [
      { name: 'A', rate: '2.5', company },
      { name: '', rate: '3' },
      { name: 'C', born: '2026-01-02' },
    ]
    const made = await contract.request('PUT', PEOPLE, { records: people })
    ids = ((await made.json()) as Body).data.map(({ id }) => id)
  })
  afterAll(async () => {
    await loose.close()
    await strict.close()
  })

  const search = async (client: HttpClient, data: object) => {
    const answer = await client.request('POST', `${PEOPLE}/search`, {
      data,
      fields: ['name'],
      sortBy: ['id'],
    })
    const { status, data: found } = (await answer.json()) as Body
    return { code: answer.status, status, names: status === 0 ? found.map(({ name }) => name) : [] }
  }
  const within = (fieldName: string, value: unknown, operator = 'in') => ({
    criteria: [{ fieldName, operator, value }],
  })
  const domain = (_domain: string, _domainContext: object) => ({ _domain, _domainContext })

  describe('null and empty values of IN', () => {
    const asked: readonly (readonly [what: string, data: () => object, names: readonly string[]])[] = [
      ['decimals', () => within('rate', [null, '', '2.5']), ['A']],
      ['ids', () => within('id', [null, '', ids[0], String(ids[2])], 'IN'), ['A', 'C']],
      ['dates', () => within('born', ['', '2026-01-02']), ['C']],
      ['references', () => within('company', [null, { id: 1 }]), ['A']],
      ['a path', () => within('company.id', [null, '', 1]), ['A']],
      ['null, but not the empty text, for a text field', () => within('name', [null, '', 'C']), ['', 'C']],
      ['only null and empty values', () => within('rate', [null, '']), []],
      ['a group', () => ({ criteria: [{ operator: 'and', ...within('rate', [null, '3']) }] }), ['']],
      ['notIn', () => within('rate', [null, '2.5'], 'notIn'), ['']],
      ['a parameter', () => domain('self.rate IN :rates', { rates: [null, '', '2.5'] }), ['A']],
      [
        'a parameter in parentheses',
        () => domain('self.id in (:ids)', { ids: [null, '', ids[0], String(ids[2])] }),
        ['A', 'C'],
      ],
      ['a nested parameter', () => domain('self.company.id IN :a.b', { a: { b: [null, 1], c: 1 } }), ['A']],
      [
        'texts',
        () => domain("self.name IN :names AND self.name != ':x'", { names: [null, '', 'A'] }),
        ['', 'A'],
      ],
      ['a parameter with only null', () => domain('self.rate IN :rates', { rates: [null] }), []],
      ['NOT IN with a parameter', () => domain('self.rate NOT IN :rates', { rates: [null, '2.5'] }), ['']],
      [
        'several domains',
        () => ({ _domains: [{ domain: 'self.rate IN :r', context: { r: [null, '3'] } }] }),
        [''],
      ],
    ]

    test.for(asked)('with --compat, null and empty values of IN are ignored: %s', async ([, data, names]) => {
      expect(await search(axelor, data())).toEqual({
        code: 200,
        status: 0,
        names: [...names].sort((a, b) => order(a) - order(b)),
      })
    })
    const order = (name: string) => ['A', '', 'C'].indexOf(name)

    test.for(asked)(
      'without --compat, null and empty values of IN are rejected with 400: %s',
      async ([, data]) => {
        expect((await search(contract, data())).code).toBe(400)
      },
    )

    const unmeant: readonly (readonly [what: string, data: object])[] = [
      ['criteria', within('rate', [null, ''], 'notIn')],
      ['a parameter', domain('self.rate NOT IN :rates', { rates: [null] })],
    ]

    test.for(unmeant)(
      'with --compat, NOT IN with only null and empty values is rejected: %s',
      async ([, data]) => {
        expect((await search(axelor, data)).status).toBe(-1)
      },
    )

    test('the mutant that drops all empty values loses matches of empty text, and turns NOT IN into a match of all', async () => {
      const mutant = (list: readonly unknown[]) => list.filter((value) => value !== null && value !== '')
      expect((await search(contract, within('name', mutant([null, '', 'C'])))).names).toEqual(['C'])
      expect((await search(contract, within('rate', mutant([null, '']), 'notIn'))).names).toHaveLength(3)
    })

    describe('cost of reading a domain', () => {
      const spaces = ' '.repeat(9_900)
      const hostile = [
        `a in${spaces}x`,
        `a in (${spaces}x`,
        `a not${spaces}in${spaces}`.slice(0, 9_990),
        `a${spaces}`,
      ]
      const plain = 'word '.repeat(1_980)
      /** The best of several runs, because others share the processor. */
      const timeOf = (work: () => void) => {
        const times = Array.from({ length: 3 }, () => {
          const start = performance.now()
          work()
          return performance.now() - start
        })
        return Math.min(...times)
      }
      /** The factor by which the worst text takes longer than one of ordinary words. */
      const growth = (read: (text: string) => unknown) => {
        const ordinary = timeOf(() => read(plain))
        return Math.max(...hostile.map((text) => timeOf(() => read(text)))) / ordinary
      }

      test('reading a domain takes time linear in its length, whatever it contains', () => {
        const { catalog } = strict.app
        expect(growth((text) => cleanDomainContext(catalog, catalog.user, text, {}))).toBeLessThan(200)
      })

      test('the mutant pattern with two adjacent runs of spaces is caught by its run time', () => {
        const mutant = /(?<![\w.[\]])([\w.[\]]+)\s+(not\s+)?in\s*\(?\s*:([\w.$]+)/gi
        expect(growth((text) => [...text.matchAll(mutant)])).toBeGreaterThan(400)
      })

      test('at most as many domains are read as a search may have terms', () => {
        let read = 0
        const _domains = Array.from({ length: 1_000 }, () => ({
          get domain() {
            read++
            return 'self.name = :a'
          },
        }))
        const { app } = loose
        PROTOCOLS.axelor(app).convertSearch(SERVICE_PRINCIPAL, app.catalog.user, { data: { _domains } })
        expect(read).toBeLessThan(3 * (MAX_TERMS + 1))
      })

      test('a search with 1,000 domains is rejected', async () => {
        const _domains = Array.from({ length: 1_000 }, () => ({ domain: "self.name = 'A'" }))
        expect(await search(axelor, { _domains })).toEqual({ code: 200, status: -1, names: [] })
      })
    })

    test('a mass update whose IN has only null and empty values changes nothing', async () => {
      const body = { data: within('rate', [null, '']), records: [{ name: 'lost' }] }
      const answer = await axelor.request('POST', `${PEOPLE}/updateMass`, body)
      expect(await answer.json()).toMatchObject({ status: 0, total: 0 })
      expect((await search(contract, {})).names).toEqual(['A', '', 'C'])
    })
  })

  describe('uploads of MetaFile', () => {
    const upload = async ({ url }: Service, field: string, path = FILES) => {
      const form = new FormData()
      form.append('field', field)
      form.append('request', JSON.stringify({ data: { fileName: 'deed.txt' } }))
      form.append('file', new Blob(['content']), 'deed.txt')
      const headers = { cookie: await openSession(url) }
      const answer = await fetch(`${url}${path}/upload`, { method: 'POST', headers, body: form })
      return { code: answer.status, body: (await answer.json()) as Body }
    }

    test.for(['undefined', 'null', 'picture', ''])(
      'with --compat, an upload of a MetaFile may name any field: "%s"',
      async (field) => {
        const { code, body } = await upload(loose, field)
        expect([code, body.status]).toEqual([200, 0])
        const file = await axelor.request('GET', `${FILES}/${body.data[0]?.id}/content/download`)
        expect(await file.text()).toBe('content')
        expect((await upload(strict, field)).code).toBe(404)
      },
    )

    test('with --compat, an upload to another model still needs the name of its field', async () => {
      const { code, body } = await upload(loose, 'undefined', '/ws/rest/doc.Paper')
      expect([code, body.status]).toEqual([200, -1])
    })
  })
})
