// The promises of the form, each with a mistake in the application that its scenario catches.
import type { Browser } from 'playwright-core'
import { describe, expect } from 'vitest'
import { testInBrowser, withTab } from '../browser.js'
import { serveMutant, type AdminMistake } from '../mutants/admin-code.js'
import { PERSON } from './models.js'
import { Person, useAdminService, type AdminService } from './person.js'
import {
  createPerson,
  requireDraftMerged,
  requireNoConflictWithLostAnswer,
  requireOneCreate,
  requireOneSaveForDoubleClick,
  requireTypedTextKept,
  requireUndoOfOwnChange,
} from './scenarios.js'

type Scenario = (admin: AdminService, person: Person) => Promise<void>

interface Promised {
  readonly claim: string
  readonly scenario: Scenario
  readonly mistakes: Readonly<Record<string, AdminMistake>>
}

const EDITOR = 'editor/record-editor.ts'

const PROMISES: readonly Promised[] = [
  {
    claim: 'a double click on a slow network is one save',
    scenario: requireOneSaveForDoubleClick,
    mistakes: {
      'several saves at once': { file: EDITOR, text: 'if (this.#isSaving) {', replacement: 'if (false) {' },
    },
  },
  {
    claim: 'a draft survives a crash, has no secrets, and is merged',
    scenario: requireDraftMerged,
    mistakes: {
      'a draft with secrets': {
        file: 'editor/drafts.ts',
        text: '!isSecret(field) && !isPending',
        replacement: '!isPending',
      },
      'a draft on top of the newest record': {
        file: EDITOR,
        text: 'base: draft.base, values, draftOf',
        replacement: 'base: latest, values, draftOf',
      },
    },
  },
  {
    claim: 'a create whose answers are lost makes one record',
    scenario: requireOneCreate,
    mistakes: {
      'a new key for each attempt': {
        file: 'editor/record-saver.ts',
        text: 'if (!this.#create ||',
        replacement: 'if (true ||',
      },
    },
  },
  {
    claim: 'a save without an answer is no conflict with oneself',
    scenario: requireNoConflictWithLostAnswer,
    mistakes: {
      'forgotten values': {
        file: 'editor/save-run.ts',
        text: 'this.#unanswered = this.form.state.value.values',
        replacement: 'return false',
      },
    },
  },
  {
    claim: 'Undo takes back one’s own change only',
    scenario: requireUndoOfOwnChange,
    mistakes: {
      'a revert to the version of the form': {
        file: 'form/use-save-report.ts',
        text: '{ record, isNew, from, to }: SaveReport',
        replacement: '{ record, isNew, since: from, to }: SaveReport',
      },
    },
  },
  {
    claim: 'a change of somebody else leaves what was typed',
    scenario: requireTypedTextKept,
    mistakes: {
      'a form that follows the record': {
        file: 'editor/editor-state.ts',
        text: 'const canAdopt = isClean &&',
        replacement: 'const canAdopt = true || isClean &&',
      },
      'a version that moves on': {
        file: 'editor/editor-state.ts',
        text: '...(canAdopt ? { base: record,',
        replacement: 'base: record, ...(canAdopt ? {',
      },
    },
  },
]

/** Expected lines of the console: refused and lost requests. */
const EXPECTED = /status of 4(04|09|22)|ERR_FAILED|status of 500/

describe('promises of the form', () => {
  const admin = useAdminService()

  for (const { claim, scenario, mistakes } of PROMISES) {
    testInBrowser(claim, async (tab) => {
      await scenario(admin, await Person.enter(tab, admin.url))
      await tab.takeErrors(EXPECTED)
    })

    for (const [mistake, change] of Object.entries(mistakes))
      testInBrowser(`the scenario "${claim}" catches ${mistake}`, async (outer) => {
        const browser = outer.context.browser() as Browser
        await withTab(browser, async (tab) => {
          await serveMutant(tab.context, admin.url, change)
          const person = await Person.enter(tab, admin.url)
          // A mutant that does not even start would prove nothing.
          await person.openRecord(PERSON, await createPerson(admin))
          await expect(scenario(admin, person)).rejects.toThrow()
          expect(await tab.takeErrors(/Error:/)).toEqual([])
        })
      })
  }
})
