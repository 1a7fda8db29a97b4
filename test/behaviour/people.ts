// People, companies and circles that the search tests look for.
import type { Page, Records } from '../../src/wire.js'

export interface People {
  readonly ada: number
  readonly emile: number
  readonly bob: number
  readonly zoe: number
  /** A person without any values. */
  readonly nobody: number
  readonly acme: number
  readonly zenith: number
  readonly oslo: number
  readonly rome: number
  readonly red: number
  readonly blue: number
  readonly badge: number
}

export async function createPeople(records: Records): Promise<People> {
  const make = async (model: string, data: object) => (await records.create(model, data)).data.id
  const acme = await make('rel.Company', { name: 'Acme', code: 'A', founded: '2001-05-06' })
  const zenith = await make('rel.Company', { name: 'Zenith', code: 'Z', parent: { id: acme } })
  const at = { company: { id: acme } }
  const doors = [{ code: 'D1', pin: '4711' }, { code: 'D2' }]
  const oslo = await make('rel.Address', { city: 'Oslo', street: 'Main', ...at, doors })
  const rome = await make('rel.Address', { city: 'Rome', ...at })
  const { version } = await records.read('rel.Company', zenith)
  await records.update('rel.Company', zenith, { version, seat: { id: rome } })
  const red = await make('rel.Circle', { name: 'Red' })
  const blue = await make('rel.Circle', { name: 'Blue' })
  const ada = await make('rel.Person', {
    ...{ name: 'Ada', born: '1815-12-10', rate: '12.50', isActive: true, ...at },
    circles: [{ id: red }, { id: blue }],
  })
  const emile = await make('rel.Person', {
    ...{ name: 'Émile', born: '1840-04-02', rate: '9.00', isActive: false, ...at },
    ...{ boss: { id: ada }, circles: [{ id: red }] },
  })
  const bob = await make('rel.Person', { name: 'Bob', company: { id: zenith }, boss: { id: emile } })
  const zoe = await make('rel.Person', { name: 'zoe 100%', rate: '100.00' })
  const nobody = await make('rel.Person', {})
  const badge = await make('rel.Badge', { holder: { id: ada } })
  return { ada, emile, bob, zoe, nobody, acme, zenith, oslo, rome, red, blue, badge }
}

export function idsOf({ data }: Page): readonly number[] {
  return data.map((record) => record.id)
}
