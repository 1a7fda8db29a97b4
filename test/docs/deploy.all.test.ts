// The commands of the deploy guide. The folder test/deploy tests the files that the guide installs.
import { mkdtempSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { cleanUpAfterwards, scratch } from '../cli/program.js'
import { findTarball } from '../package/installed.js'
import { readPage, ROOT, type Step } from './page.js'
import { followPage, STOP_SERVICE } from './reader.js'

cleanUpAfterwards()
vi.setConfig({ testTimeout: 300_000 })

test('the commands of the deploy guide install the package, and preview a migration', async () => {
  const tarball = await findTarball()
  const data = mkdtempSync(path.join(scratch, 'data-'))
  const { outputs, folder } = await followPage('docs/guides/deploy.md', {
    tarball,
    adapt: (step) => (step.text.includes('verso schema') ? previewBesideService(step, data) : step),
  })
  const previews = outputs.filter((text) => text.includes(`sqlite:${data}/verso.db`))
  expect(previews).toEqual([
    `No changes are needed in sqlite:${data}/verso.db.\n`,
    expect.stringMatching(
      /^Planned for .*:\n {2}\+ todo\.Tag\.icon: new column \(string\)\nThe service applies /,
    ),
  ])
  expect(outputs.at(-1)).toMatch(/\d+\.\d+\.\d+\n$/)
  // The package has the files of the folder deploy, and the page copies them into the project.
  expect(readdirSync(path.join(folder, 'verso/deploy'))).toEqual(readdirSync(path.join(ROOT, 'deploy')))
})

/** The steps around the preview of a migration: the service of the guide runs with the starter models, and a model gets a field. */
function previewBesideService(step: Step, data: string): Step[] {
  const preview = step.text.replace('/var/lib/verso', data)
  const database = /--db (\S+)/.exec(preview)?.[1] ?? ''
  const addField = `node -e "
    const fs = require('node:fs')
    const tag = JSON.parse(fs.readFileSync('models-new/tag.json', 'utf8'))
    fs.writeFileSync('models-new/tag.json', JSON.stringify({ ...tag, fields: { ...tag.fields, icon: { type: 'string' } } }))"`
  return [
    { ...step, kind: 'serve', text: `npx verso serve --db ${database} --models models` },
    { ...step, text: `cp -r models models-new\n${preview}` },
    { ...step, text: `${addField}\n${preview}` },
    { ...step, text: STOP_SERVICE },
  ]
}

test('the guide links to every file of the folder deploy', () => {
  const files = readdirSync(path.join(ROOT, 'deploy'))
  const guide = readPage('docs/guides/deploy.md')
  expect(files.filter((file) => !guide.includes(`(../../deploy/${file})`))).toEqual([])
})
