// Each guide is followed from an empty folder with the packed package, and ends as it says. The package is installed once, and copied for each guide.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { cleanUpAfterwards } from '../cli/program.js'
import { findInstalledProject, findTarball } from '../package/installed.js'
import { readPage, ROOT } from './page.js'
import { followPage } from './reader.js'

cleanUpAfterwards()
vi.setConfig({ testTimeout: 300_000 })

let options = {}
beforeAll(async () => {
  options = { tarball: await findTarball(), installed: await findInstalledProject() }
})

describe('guides', () => {
  test('the commands of "Build an app in 15 minutes" make an app with a page, a role and a program', async () => {
    const { outputs } = await followPage('docs/guides/build-an-app.md', options)
    const program = outputs.find((text) => text.includes('Call Ada')) ?? ''
    const tasks =
      '1: Call Ada, Nordlicht, version 0\n2: Send the offer, Nordlicht, version 0\n3: Book a room, Nordlicht, version 0\n'
    expect(program).toBe(tasks + tasks)
    expect(outputs.at(-1)).toMatch(
      /^version +action +time +user +changes\n0 +create +\S+ \S+ UTC +Bob +subject: null → "Call Ada"/,
    )
  })

  test('the commands of "From a browser" list contacts with a key and follow the feed', async () => {
    const { outputs } = await followPage('docs/guides/browser.md', options)
    expect(outputs.at(-1)).toBe('12 contacts\nfirst change: create com.axelor.contact.db.Contact 1\n')
  })

  test('the commands of "Use the TypeScript client" compile, merge an edit and resolve a conflict', async () => {
    const { outputs } = await followPage('docs/guides/client.md', options)
    expect(outputs[2]).toBe('2 contacts: مريم الخطيب, Freja Bjørnstad\nAda Byron King, version 1\n')
    expect(outputs[3]).toBe(
      'merged: 555-0100 and grace@example.org, version 2\n' +
        'resolved: Met in Kiel. Sends regards. Call back. (was: Met in Kiel.)\n' +
        'conflict: version 3, clash in notes\n',
    )
    expect(outputs[4]).toBe('14 contacts, then: create Lovelace\n')
  })

  test('the commands of "Embed it in a program and in tests" run the program and its tests', async () => {
    const { outputs } = await followPage('docs/guides/embed.md', options)
    expect(outputs[1]).toMatch(
      /^conflict: version 1 is current, mergeable: true\ninvalid: hours are needed for a finished task\n1 task to do\nGET http:\/\/localhost:\d+\/healthz: 200\n$/,
    )
    expect(outputs[2]).toMatch(/# pass 3\n# fail 0|pass 3\n.*fail 0/)
  })

  test('the commands of "Rules of your own" run its rules, its mails, its report and its tests', async () => {
    const { outputs, folder } = await followPage('docs/guides/rules.md', {
      ...options,
      adapt: (step) => {
        // The service may still be reloading when the next command runs.
        if (step.path === 'models/mails.ts') return [step, { ...step, kind: 'serve', text: 'npx verso dev' }]
        const text = step.text.replace('sleep 2\n', 'until [ -n "$(ls outbox)" ]; do sleep 0.1; done\n')
        return { ...step, text }
      },
    })
    const printed = outputs.join('')
    const listed = [...readPage('docs/guides/rules.md').matchAll(/^```text\n(.*?)^```$/gms)].map(
      ([, text]) => text,
    )
    expect(listed).toHaveLength(4)
    for (const [index, text = ''] of listed.entries()) {
      // The list of failures has times and numbers.
      if (index !== 1) expect(printed).toContain(text.trim())
    }
    expect(printed).toContain('"total":5000')
    for (const refused of [
      '"email":"must be an e-mail address"',
      '"lines[0].quantity":"is more than the 8 free pieces"',
      '{"total":"is more than the credit limit leaves: 10000"}',
    ])
      expect(printed).toContain(refused)
    expect(printed).toMatch(/^1 +shop\.Order\/confirmOrder +2 .* ENOENT: no such file or directory/m)
    expect(outputs.at(-1)).toMatch(/# pass 6\n# fail 0|pass 6\n.*fail 0/)
    expect(await checkTypes(path.join(folder, 'shop'))).toBe('')
  })

  test('the commands of "Handle conflicts" end with the numbers that three programs added', async () => {
    const { outputs } = await followPage('docs/guides/conflicts.md', {
      ...options,
      // A stream never ends.
      adapt: (step) => ({
        ...step,
        text: step.text.replace('curl -sN', 'curl -sN --max-time 3').replace(/^(curl -sN.*)$/m, '$1 || true'),
      }),
    })
    expect(outputs.at(-2)).toMatch(/^version \d+: \S.*, 555-020[123], 555-020[123], 555-020[123]\n$/)
    expect(outputs.at(-1)).toMatch(/violations +0/)
    // 12 contacts of the sample, and six changes of this page.
    expect(outputs.find((text) => text.includes('event: change'))?.match(/^event: change$/gm)).toHaveLength(
      18,
    )
  })
})

/** Checks the TypeScript files of a project as strictly as an editor can. Returns the errors. */
async function checkTypes(folder: string): Promise<string> {
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    strict: true,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    noEmit: true,
    skipLibCheck: true,
    typeRoots: [path.join(ROOT, 'node_modules/@types')],
    types: ['node'],
  }
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  return new Promise((resolve) => {
    const compiler = path.join(ROOT, 'node_modules/.bin/tsc')
    execFile(compiler, ['-p', folder], (error, stdout) => {
      resolve(stdout || (error?.message ?? ''))
    })
  })
}
