// Roles that see different records of the project fixture, each condition as stored and as a predicate.
import type { Cell } from '../properties/search-oracle.js'
import { BADGE, PROJECT, TAG, TASK, TEAM } from './project-records.js'
import type { Grant } from './reference.js'

const r = 'r'
const own: Pick<Grant, 'text' | 'meets'> = {
  text: 'createdBy = :user',
  meets: (row, { user }) => row['createdBy'] === user.id,
}
type Test = Grant['meets']
const on = (text: string, meets: NonNullable<Test>) => ({ text, meets })
const number = (cell: Cell | undefined) => (typeof cell === 'number' ? cell : NaN)
const ids = (cell: Cell | undefined) => cell as readonly number[]

/** The grants of each role: r, c, u, d, x stand for read, create, update, remove and export. */
export const ROLES: Readonly<Record<string, readonly Grant[] | 'everything'>> = {
  ada: 'everything',
  nothing: [],
  editor: [{ model: '*', can: 'rcudx' }],
  reader: [{ model: '*', can: 'rx' }],
  reads: [{ model: '*', can: r }],
  creates: [{ model: '*', can: 'c' }],
  updates: [{ model: '*', can: 'u' }],
  removes: [{ model: '*', can: 'd' }],
  exports: [{ model: '*', can: 'x' }],
  own: [{ model: '*', can: 'rcudx', ...own }],
  paths: [
    {
      ...{ model: PROJECT, can: 'rcudx' },
      ...on("team.parent.name = 'North'", (row, { at }) => {
        const parent = at(TEAM, at(TEAM, row['team'])?.['parent'])
        return parent?.['name'] === 'North'
      }),
    },
    { model: TEAM, can: r },
    {
      ...{ model: TASK, can: 'rcud' },
      ...on("project.team.city = 'Kiel'", (row, { at }) => {
        return at(TEAM, at(PROJECT, row['project'])?.['team'])?.['city'] === 'Kiel'
      }),
    },
  ],
  lists: [
    {
      ...{ model: PROJECT, can: 'rcud' },
      ...on("tags.name = 'red'", (row, { at }) =>
        ids(row['tags']).some((id) => at(TAG, id)?.['name'] === 'red'),
      ),
    },
    { model: TAG, can: r },
    {
      ...{ model: TASK, can: 'rcud' },
      ...on('project.tasks.hours > 7', (row, { at }) =>
        ids(at(PROJECT, row['project'])?.['tasks'] ?? []).some((id) => number(at(TASK, id)?.['hours']) > 7),
      ),
    },
  ],
  fielded: [
    {
      ...{ model: PROJECT, can: 'rcu' },
      ...on('team in :user.teams', (row, { user }) => ids(user['teams']).includes(number(row['team']))),
    },
    { model: TEAM, can: 'ru', ...on('id = :user.home', (row, { user }) => row.id === user['home']) },
    { model: TASK, can: r },
  ],
  leveled: [
    {
      ...{ model: PROJECT, can: 'rcudx' },
      ...on('score >= :user.level', (row, { user }) => number(row['score']) >= number(user['level'])),
    },
    { model: 'misc.*', can: 'rcud' },
    { model: TEAM, can: r, ...on('not id in :user.teams', () => true) },
  ],
  package: [{ model: 'lab.*', can: 'rcudx' }],
  exact: [{ model: TASK, can: 'rcudx' }],
  disjoint: [
    { model: PROJECT, can: 'rcux', readable: ['title', 'score'], writable: ['day', 'flag'] },
    { model: TEAM, can: r, readable: ['city'] },
  ],
  overlaps: [
    {
      ...{ model: PROJECT, can: 'rcudx' },
      ...{ readable: ['title', 'score', 'team', 'tasks'], writable: ['title', 'flag', 'team', 'tasks'] },
    },
    { model: TEAM, can: 'ru', readable: ['city'], writable: ['city'] },
    { model: TASK, can: 'rcud', readable: ['hours', 'project'], writable: ['hours', 'project'] },
  ],
  sums: [
    { model: PROJECT, can: 'rud', ...own },
    { model: PROJECT, can: r, readable: ['title', 'team'] },
    { model: TEAM, can: r, readable: ['name'] },
    { model: TEAM, can: 'ru', ...own, readable: ['city'], writable: ['city'] },
    { model: TASK, can: 'rd', readable: ['label', 'project'] },
  ],
  three: [
    { model: PROJECT, can: r, ...on('score > 3', (row) => number(row['score']) > 3), readable: ['title'] },
    {
      ...{ model: PROJECT, can: 'rx' },
      ...on('flag = true', (row) => row['flag'] === true),
      readable: ['score', 'tasks'],
    },
    { model: PROJECT, can: 'rucd', ...own, readable: ['day', 'team', 'tags'], writable: ['title', 'team'] },
    {
      ...{ model: PROJECT, can: 'u' },
      ...on('score > 5', (row) => number(row['score']) > 5),
      writable: ['score', 'flag', 'title'],
    },
    { model: TASK, can: r, ...on('hours > 2', (row) => number(row['hours']) > 2) },
    { model: TAG, can: r, ...on('rank < 5', (row) => number(row['rank']) < 5), readable: ['name'] },
    { model: TEAM, can: r },
  ],
  neighbours: [
    { model: PROJECT, can: 'rcudx' },
    { model: TEAM, can: 'rcu', ...on("city = 'Kiel'", (row) => row['city'] === 'Kiel') },
    { model: TASK, can: 'rcud', ...on('hours < 7', (row) => number(row['hours']) < 7) },
    { model: TAG, can: r, ...on('rank > 1', (row) => number(row['rank']) > 1) },
  ],
  bare: [{ model: PROJECT, can: 'rux', readable: [] }],
  lacking: [
    { model: '*', can: 'rcudx', ...on('hours > 3', (row) => number(row['hours']) > 3), lacks: 'hours' },
  ],
  masks: [
    { model: TEAM, can: r, ...on('budget >= 20', (row) => number(row['budget']) >= 20), readable: ['name'] },
    { model: TEAM, can: r, readable: ['city', 'parent'] },
    { model: TEAM, can: r, ...own, readable: ['budget', 'projects'] },
    { model: PROJECT, can: 'ru', readable: ['title', 'team', 'badge', 'cover'] },
    { model: PROJECT, can: 'r', ...own, readable: ['score', 'flag', 'tags'] },
    { model: TASK, can: r },
    { model: BADGE, can: r },
    { model: TAG, can: r, ...own },
  ],
  flagged: [
    { model: PROJECT, can: r },
    { model: PROJECT, can: 'x', ...on('flag = true', (row) => row['flag'] === true) },
    { model: TASK, can: 'rx' },
  ],
}
