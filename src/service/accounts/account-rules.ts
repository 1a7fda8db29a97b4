// What an account must be, besides what its model says.
import { normalizeUsername, USERNAME_RULE } from '../../model/auth.js'
import type { Draft } from '../../model/draft.js'
import type { Faults } from '../../model/faults.js'
import { passwordFault } from '../../model/password.js'
import type { Values } from '../../model/value.js'
import * as store from '../../store/records.js'
import type { App } from '../app.js'
import type { Caller } from '../rights/caller.js'

/** The one account that may have a password which everybody knows, in the demo alone. */
export const DEMO_USERNAME = 'admin'
export const DEMO_PASSWORD = 'admin'

/** The draft with its user name in the one spelling that it is kept in. */
export async function checkAccount(app: App, by: Caller, draft: Draft, faults: Faults): Promise<Draft> {
  const { values, place } = draft
  const { username, password } = values
  const normal = typeof username === 'string' ? normalizeUsername(username) : undefined
  if (typeof username === 'string' && normal === undefined) faults.add(`${place}username`, USERNAME_RULE)
  const checked: Draft = normal === undefined ? draft : { ...draft, values: { ...values, username: normal } }
  if (typeof password === 'string' && !isOfDemo(app, by, password)) {
    const fault = passwordFault(password, await completed(app, checked))
    if (fault !== undefined) faults.add(`${place}password`, fault)
  }
  return checked
}

/** What a record will hold once the draft is written: what was sent, and what is there. */
export async function completed(app: App, { model, key, values }: Draft): Promise<Values> {
  const there = key && (await store.read(app.db.reader, app.tables.of(model), key.id))
  return { ...(there as Values | undefined), ...values }
}

function isOfDemo({ settings }: App, { actor }: Caller, password: string): boolean {
  return settings.isDemo && actor === null && password === DEMO_PASSWORD
}
