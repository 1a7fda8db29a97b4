// Names of models, files, users, keys and programs are shown as texts, and an address that somebody has written leads to words.
import { Readable } from 'node:stream'
import { describe, expect } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { testInBrowser } from '../browser.js'
import { PASSWORD, USERNAME } from '../targets.js'
import { enterWatched, expectHarmless, expectShown } from './hostile.js'
import { HOSTILE_TEXTS } from './hostile-texts.js'
import { ADMIN_MODELS, PERSON } from './models.js'
import { BOB, useAdminService, withOther } from './person.js'

const MAX_KEY_NAME = 100
const STRANGE = 'crm.Strange'
const IMAGE = '<img src=x onerror="window.hostile=1">'

/** The words of a model are written by developers, and are texts all the same. */
const strange = defineModel({
  name: STRANGE,
  title: IMAGE,
  fields: {
    name: { type: 'string', title: `${IMAGE} name`, help: `${IMAGE} help` },
    state: { type: 'string', selection: [{ value: 'a', title: `${IMAGE} choice` }] },
  },
})

describe('hostile names', () => {
  const admin = useAdminService('sqlite', {
    models: [...ADMIN_MODELS, { file: 'strange', definition: strange }],
  })

  testInBrowser('are shown as texts in names of models, files, users, keys and programs', async (tab) => {
    const ada = await enterWatched(tab, admin.url)
    await admin.program.create(STRANGE, { name: IMAGE, state: 'a' })
    await ada.open(`/records/${STRANGE}`)
    await expectShown(ada, [IMAGE, `${IMAGE} name`])
    await ada.open(`/records/${STRANGE}/1`)
    await expectShown(ada, [IMAGE, `${IMAGE} name`, `${IMAGE} choice`, `${IMAGE} help`])
    const { data: owner } = await admin.program.create(PERSON, { lastName: 'Files' })
    let version = owner.version
    for (const name of HOSTILE_TEXTS.filter((text) => !/[\\/]/.test(text)).slice(0, 5)) {
      const content = Readable.from([Buffer.from(IMAGE)])
      const upload = { field: 'photo', name, content, data: { id: owner.id, version } }
      const { data } = await admin.program.upload(PERSON, upload)
      version = data.version
      await ada.openRecord(PERSON, owner.id)
      await ada.page.reload()
      await ada.saveButton.waitFor()
      await expectHarmless(ada)
    }
    const names = HOSTILE_TEXTS.filter(({ length }) => length <= MAX_KEY_NAME)
    for (const name of names)
      expect((await admin.program.request('POST', '/ws/me/keys', { data: { name } })).status).toBe(200)
    await fetch(`${admin.url}/callback`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': IMAGE },
      body: JSON.stringify({ username: USERNAME, password: PASSWORD }),
    })
    const { data: users } = await admin.program.find('verso.auth.User', { filter: "username = 'bob'" })
    await admin.program.update('verso.auth.User', users[0]?.id ?? 0, {
      version: users[0]?.version,
      name: IMAGE,
    })
    await ada.open('/account')
    await expectShown(ada, names)
    await ada.page.setViewportSize({ width: 360, height: 740 })
    expect(await ada.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
    await ada.openRecord('verso.auth.User', users[0]?.id ?? 0)
    await expectShown(ada, [IMAGE])
    await withOther(ada, BOB, async (bob) => {
      await bob.open('/')
      await expectShown(bob, [`Welcome, ${IMAGE}`])
      await expectShown(bob, [IMAGE], 'header')
      await bob.openRecord(PERSON, owner.id)
      await bob.field('Last name').fill('By Bob')
      await ada.openRecord(PERSON, owner.id)
      await ada.field('Last name').fill('By Ada')
      await bob.save()
      await ada.see(`${IMAGE} changed this`)
      await expectHarmless(ada)
    })
  })

  testInBrowser('in an address lead to words, not to a crash', async (tab) => {
    await admin.program.create(PERSON, { lastName: IMAGE })
    const ada = await enterWatched(tab, admin.url)
    const raw = [
      '%',
      '%E0%A4%A',
      '[]',
      '{}',
      'null',
      '"',
      '[[1]]',
      '{"and":5}',
      '{"and":[null]}',
      '{"q":{}}',
      '1e99',
      '-1',
    ]
    for (const text of [...HOSTILE_TEXTS, ...raw]) {
      const encoded = encodeURIComponent(text)
      const list = ['filter', 'columns', 'page', 'perPage', 'sort', 'order'].map(
        (name) => `${name}=${encoded}`,
      )
      const addresses = [`/records/${encoded}`, `/records/${PERSON}?${list.join('&')}`]
      if (raw.includes(text))
        addresses.push(
          `/records/${PERSON}/${encoded}`,
          `/records/${PERSON}/1/history?view=${encoded}&version=${encoded}&older=${encoded}`,
          `/records/${text}`,
          `/records/${PERSON}?filter=${text}&columns=${text}`,
          `/${text}`,
        )
      for (const path of addresses) {
        await ada.open(path)
        await expect
          .poll(
            () =>
              ada.page.evaluate(`document.querySelector('main :is(h1, [role=alert])')?.textContent ?? ''`),
            { message: path, timeout: 8_000 },
          )
          .not.toBe('')
      }
      await expectHarmless(ada)
    }
    await tab.takeErrors(/status of (400|403|404)/)
  })
})
