// Every command of every page is run by a test, and every link leads somewhere.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { listPages, listShellBlocks, NOT_RUN, readPage, readSteps, ROOT, type ShellBlock } from './page.js'

const pages = listPages()
const withCommands = pages.filter((page) => listShellBlocks(page).length > 0)
const withSteps = pages.filter((page) => readSteps(page).some(({ kind }) => kind !== 'file'))
const withBlocksNotRun = pages.filter((page) => listBlocksNotRun(page).length > 0)
const withLinks = pages.filter((page) => listLinks(page).length > 0)

/** The test files that follow pages. */
const tests = ['test/docs', 'test/cli']
  .flatMap((folder) => readdirSync(path.join(ROOT, folder)).map((name) => path.join(ROOT, folder, name)))
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n')

describe('commands', () => {
  test('there are pages with commands', () => {
    expect(withCommands.length).toBeGreaterThan(15)
    expect(withSteps.length).toBeGreaterThan(15)
  })

  test.for(withSteps)('a test follows %s', (page) => {
    expect(tests).toMatch(new RegExp(`(followPage|paste)\\('${page.replaceAll('.', '\\.')}'`))
  })

  test.for(withBlocksNotRun)(
    'the shell blocks of %s that no test runs have a reason, and are valid',
    (page) => {
      for (const { word, text, line } of listBlocksNotRun(page)) {
        expect(Object.keys(NOT_RUN), `${page}:${line}`).toContain(word)
        expect(spawnSync('bash', ['-n', '-c', text], { encoding: 'utf8' }).stderr, `${page}:${line}`).toBe('')
      }
    },
  )

  test.for(withCommands)('%s names the program as its reader can run it', (page) => {
    for (const { text, line } of listShellBlocks(page)) {
      const place = `${page}:${line}`
      // A bare name is not on the path of the reader, and `npx verso` outside of a project runs a package of somebody else.
      expect(text, place).not.toMatch(/(^|[|&;(]\s*|=\S+ )verso /m)
      if (!page.startsWith('docs/guides/')) expect(text, place).not.toContain('npx verso')
    }
  })
})

describe('links', () => {
  test.for(withLinks)('every link of %s leads to a file and a heading that exist', (page) => {
    const broken = listLinks(page).filter((link) => {
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? page : path.join(path.dirname(page), file)
      if (!existsSync(path.join(ROOT, target))) return true
      return anchor !== undefined && !listAnchors(target).includes(anchor)
    })
    expect(broken).toEqual([])
  })

  test('the index of the documentation links to every page', () => {
    const index = readPage('docs/README.md')
    const own = pages.filter((page) => page.startsWith('docs/') && !page.startsWith('docs/decisions/'))
    const missing = own.filter(
      (page) => page !== 'docs/README.md' && !index.includes(`(${page.slice('docs/'.length)})`),
    )
    expect(missing).toEqual([])
  })
})

function listBlocksNotRun(page: string): ShellBlock[] {
  return listShellBlocks(page).filter(({ word }) => word !== '')
}

function readProse(page: string): string {
  return readPage(page).replaceAll(/^```.*?^```$/gms, '')
}

/** Links to other pages and headings, not to the web. */
function listLinks(page: string): string[] {
  const links = [...readProse(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)
  return links.filter((link) => !/^[a-z]+:/.test(link))
}

function listAnchors(page: string): string[] {
  const text = readProse(page)
  const explicit = [...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id)
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
  return [...explicit, ...headings]
}

describe('words', () => {
  test.for([
    ['optimistic', 'README.md'],
    ['optimistic', 'docs/reference/versions.md'],
    ['audit', 'docs/reference/history.md'],
    ['migration', 'docs/reference/models.md'],
    ['migration', 'docs/guides/deploy.md'],
    ['cursor', 'docs/reference/feed.md'],
    ['deploy', 'docs/guides/deploy.md'],
    ['upgrade', 'docs/guides/deploy.md'],
    ['backup', 'docs/operations/backup.md'],
    ['retention', 'docs/operations/settings.md'],
    ['rate limit', 'docs/reference/errors.md'],
  ] as const)('a reader who searches for "%s" finds it in %s', ([word, page]) => {
    expect(readProse(page).toLowerCase()).toContain(word)
  })
})
