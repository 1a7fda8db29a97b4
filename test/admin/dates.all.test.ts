// A date is the same day for everybody, and a moment is the same moment, whatever the time zone of the browser.
import { describe, expect } from 'vitest'
import { testInBrowser } from '../browser.js'
import { PERSON } from './models.js'
import { Person, useAdminService } from './person.js'

interface Zone {
  readonly name: string
  /** Local times, and the same moments in UTC. Where clocks change, just before and just after. Browsers leave out seconds of zero. */
  readonly moments: readonly (readonly [local: string, utc: string])[]
}

const ZONES: readonly Zone[] = [
  { name: 'Etc/GMT+12', moments: [['2024-07-01T08:30:15', '2024-07-01T20:30:15.000Z']] },
  {
    name: 'America/New_York',
    moments: [
      ['2024-07-01T23:30:15', '2024-07-02T03:30:15.000Z'],
      ['2024-03-10T01:59:59', '2024-03-10T06:59:59.000Z'],
      ['2024-03-10T03:00:01', '2024-03-10T07:00:01.000Z'],
      ['2024-11-03T00:59:59', '2024-11-03T04:59:59.000Z'],
      ['2024-11-03T02:00:01', '2024-11-03T07:00:01.000Z'],
    ],
  },
  {
    name: 'Europe/Athens',
    moments: [
      ['2024-12-31T23:59:59', '2024-12-31T21:59:59.000Z'],
      ['2024-03-31T02:59:59', '2024-03-31T00:59:59.000Z'],
      ['2024-03-31T04:00:01', '2024-03-31T01:00:01.000Z'],
    ],
  },
  { name: 'Africa/Johannesburg', moments: [['2024-01-01T00:30:01', '2023-12-31T22:30:01.000Z']] },
  { name: 'Pacific/Kiritimati', moments: [['2024-01-01T08:30:15', '2023-12-31T18:30:15.000Z']] },
]
const DAYS = [
  ['2024-03-10', 'Mar 10, 2024'],
  ['2024-12-31', 'Dec 31, 2024'],
  ['1900-01-01', 'Jan 1, 1900'],
] as const

/** As English writes it: `Jul 1, 2024, 8:30:15 AM`. The space before AM may be narrow. */
function describeLocal(local: string): RegExp {
  const text = new Date(`${local}Z`).toLocaleString('en', {
    dateStyle: 'medium',
    timeStyle: 'medium',
    timeZone: 'UTC',
  })
  return new RegExp(text.replaceAll(/\s/g, String.raw`\s`))
}

function pick<T>(values: readonly T[], step: number): T {
  const value = values[step % values.length]
  if (value === undefined) throw new Error('there is no value')
  return value
}

describe('dates and times', () => {
  const admin = useAdminService()
  let number = 0

  async function enterFrom(zone: string, tab: Parameters<typeof Person.enter>[0]): Promise<Person> {
    const debug = await tab.context.newCDPSession(tab.page)
    await debug.send('Emulation.setTimezoneOverride', { timezoneId: zone })
    return Person.enter(tab, admin.url)
  }

  for (const { name: zone, moments } of ZONES)
    testInBrowser(`what is typed in ${zone} is stored, and shown everywhere as it was typed`, async (tab) => {
      const person = await enterFrom(zone, tab)
      const lastName = `Zone${++number}`
      await person.openNew(PERSON)
      await person.field('Last name').fill(lastName)
      await person.page.getByRole('button', { name: 'Create', exact: true }).click()
      await person.saveButton.waitFor()
      const { data } = await admin.program.find(PERSON, { filter: `lastName = '${lastName}'` })
      const id = data[0]?.id ?? 0
      const steps = Array.from({ length: Math.max(moments.length, DAYS.length) }, (_, step) => ({
        moment: pick(moments, step),
        day: pick(DAYS, step),
      }))
      for (const {
        moment: [local, utc],
        day: [day],
      } of steps) {
        await person.field('Birthday').fill(day)
        await person.field('Met on').fill(local)
        await person.save()
        expect(await admin.program.read(PERSON, id)).toMatchObject({ birthday: day, metOn: utc })
        await person.page.reload()
        await person.expectValue('Birthday', day)
        await person.expectValue('Met on', local)
      }
      const filter = encodeURIComponent(JSON.stringify({ lastName }))
      await person.open(`/records/${PERSON}?columns=birthday,metOn&filter=${filter}`)
      const row = person.page.locator('tbody')
      await row.getByText(describeLocal(pick(moments, steps.length - 1)[0])).waitFor()
      await row.getByText(pick(DAYS, steps.length - 1)[1]).waitFor()
      await person.open(`/records/${PERSON}/${id}/history`)
      for (const [, text] of DAYS) await person.see(text)
      for (const [local] of moments) await person.see(describeLocal(local))
    })

  for (const zone of ['Etc/GMT+12', 'Pacific/Kiritimati'])
    testInBrowser(`a conflict in ${zone} shows the days that were typed`, async (tab) => {
      const { data } = await admin.program.create(PERSON, { lastName: 'Clash', birthday: '2024-03-10' })
      const person = await enterFrom(zone, tab)
      await person.page.route('**/ws/changes**', (route) => route.abort())
      await person.openRecord(PERSON, data.id)
      await person.field('Birthday').fill('2024-03-09')
      await person.field('Met on').fill('2024-01-01T08:30:15')
      await admin.program.update(PERSON, data.id, {
        version: 0,
        birthday: '2024-03-11',
        metOn: '2024-01-01T12:00:00.000Z',
      })
      await person.saveButton.click()
      await person.dialog.getByText('Mar 9, 2024').first().waitFor()
      await person.dialog.getByText('Mar 11, 2024').first().waitFor()
      await person.dialog.getByText(describeLocal('2024-01-01T08:30:15')).first().waitFor()
      for (const radio of await person.dialog.getByRole('radio', { name: /Yours/ }).all()) await radio.click()
      await person.dialog.getByRole('button', { name: 'Save this' }).click()
      await person.waitUntilSaved()
      const hour = zone === 'Etc/GMT+12' ? '2024-01-01T20:30:15.000Z' : '2023-12-31T18:30:15.000Z'
      expect(await admin.program.read(PERSON, data.id)).toMatchObject({ birthday: '2024-03-09', metOn: hour })
      // No further request fails after those that are taken.
      await person.page.unroute('**/ws/changes**')
      await tab.takeErrors(/status of 409|ERR_FAILED/)
    })

  testInBrowser(
    'an hour that exists twice stays the one that it is, and keeps its milliseconds',
    async (tab) => {
      const metOn = '2024-11-03T06:30:00.123Z'
      const { data } = await admin.program.create(PERSON, { lastName: 'Twice', metOn })
      const person = await enterFrom('America/New_York', tab)
      await person.openRecord(PERSON, data.id)
      await person.expectValue('Met on', '2024-11-03T01:30:00.123')
      await person.field('Phone').fill('1')
      await person.save()
      expect(await admin.program.read(PERSON, data.id)).toMatchObject({ phone: '1', metOn })
      await person.field('Met on').fill('2024-11-03T01:45:00')
      await person.save()
      expect(await admin.program.read(PERSON, data.id)).toMatchObject({ metOn: '2024-11-03T06:45:00.000Z' })
      // Clocks jump over this time: it is an hour later, not an hour that is wrong by a day.
      await person.field('Met on').fill('2024-03-10T02:30:00')
      await person.save()
      expect(await admin.program.read(PERSON, data.id)).toMatchObject({ metOn: '2024-03-10T07:30:00.000Z' })
    },
  )
})
