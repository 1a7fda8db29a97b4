// Teams, projects and tasks with every kind of relation; `roles.ts` defines who sees which part of it.
import { defineModel } from '../../src/model/definition/define-model.js'
import { extendModel } from '../../src/model/definition/extend-model.js'
import type { ModelSource } from '../../src/model/catalog/catalog.js'
import type { Cell, Row, Shapes, Dataset } from '../properties/search-oracle.js'

export const TEAM = 'lab.Team'
export const PROJECT = 'lab.Project'
export const TASK = 'lab.Task'
export const BADGE = 'lab.Badge'
export const TAG = 'misc.Tag'
export const USER = 'verso.auth.User'
export const MODELS = [TEAM, PROJECT, TASK, BADGE, TAG] as const

const definitions = [
  defineModel({
    name: TEAM,
    fields: {
      name: { type: 'string' },
      city: { type: 'string' },
      budget: { type: 'integer' },
      parent: { type: 'many-to-one', target: TEAM },
      projects: { type: 'one-to-many', target: PROJECT, mappedBy: 'team' },
    },
    listFields: ['name', 'city'],
  }),
  defineModel({
    name: PROJECT,
    fields: {
      title: { type: 'string' },
      score: { type: 'integer', default: 0 },
      day: { type: 'date' },
      flag: { type: 'boolean' },
      team: { type: 'many-to-one', target: TEAM },
      tasks: { type: 'one-to-many', target: TASK, mappedBy: 'project', owned: true },
      tags: { type: 'many-to-many', target: TAG },
      badge: { type: 'one-to-one', target: BADGE, mappedBy: 'holder' },
      cover: { type: 'binary' },
    },
    nameField: 'title',
    listFields: ['title', 'score', 'day', 'flag', 'team'],
  }),
  defineModel({
    name: TASK,
    fields: {
      label: { type: 'string' },
      hours: { type: 'integer' },
      project: { type: 'many-to-one', target: PROJECT },
    },
    nameField: 'label',
    listFields: ['label', 'hours', 'project'],
  }),
  defineModel({
    name: BADGE,
    fields: { code: { type: 'string' }, holder: { type: 'one-to-one', target: PROJECT } },
    nameField: 'code',
    listFields: ['code', 'holder'],
  }),
  defineModel({
    name: TAG,
    fields: {
      name: { type: 'string' },
      rank: { type: 'integer' },
      projects: { type: 'many-to-many', target: PROJECT, mappedBy: 'tags' },
    },
    listFields: ['name', 'rank'],
    archived: true,
  }),
  extendModel({
    name: USER,
    fields: {
      level: { type: 'integer' },
      home: { type: 'many-to-one', target: TEAM },
      teams: { type: 'many-to-many', target: TEAM },
    },
  }),
]

export const sources: readonly ModelSource[] = definitions.map((definition) => ({
  file: 'project-records.ts',
  definition,
}))

const one = (target: string, through?: string) =>
  ({ kind: 'one', target, ...(through === undefined ? {} : { through }) }) as const
const many = (target: string, through?: string) =>
  ({ kind: 'many', target, ...(through === undefined ? {} : { through }) }) as const
const kept: Shapes[string]['fields'] = {
  ...({ id: 'number', version: 'number', createdOn: 'datetime', updatedOn: 'datetime' } as const),
  ...{ createdBy: one(USER), updatedBy: one(USER) },
}

export const SHAPES: Shapes = {
  [USER]: { name: 'name', fields: { id: 'number', version: 'number', name: 'text' } },
  [TEAM]: {
    name: 'name',
    fields: {
      ...kept,
      ...({ name: 'text', city: 'text', budget: 'number' } as const),
      ...{ parent: one(TEAM), projects: many(PROJECT, 'team') },
    },
  },
  [PROJECT]: {
    name: 'title',
    fields: {
      ...kept,
      ...({ title: 'text', score: 'number', day: 'date', flag: 'boolean', team: one(TEAM) } as const),
      ...{ tasks: many(TASK, 'project'), tags: many(TAG), badge: one(BADGE, 'holder') },
    },
  },
  [TASK]: { name: 'label', fields: { ...kept, label: 'text', hours: 'number', project: one(PROJECT) } },
  [BADGE]: { name: 'code', fields: { ...kept, code: 'text', holder: one(PROJECT) } },
  [TAG]: {
    name: 'name',
    fields: {
      ...kept,
      ...({ name: 'text', rank: 'number', archived: 'boolean' } as const),
      projects: many(PROJECT, 'tags'),
    },
  },
}

/** The fields in a list; inverse relations are shown only on request. */
export const LIST: Readonly<Record<string, readonly string[]>> = {
  [TEAM]: ['name', 'city'],
  [PROJECT]: ['title', 'score', 'day', 'flag', 'team'],
  [TASK]: ['label', 'hours', 'project'],
  [BADGE]: ['code', 'holder'],
  [TAG]: ['name', 'rank'],
}
export const VIEWS: readonly string[] = [`${TEAM}.projects`, `${PROJECT}.badge`, `${TAG}.projects`]

const team = (name: string | null, city: string, budget: number, parent: Cell) => ({
  ...{ name, city, budget, parent },
})
const project = (
  ...[title, score, day, flag, of, tags]: [string, Cell, Cell, Cell, Cell, readonly number[]]
) => ({ title, score, day, flag, team: of, tags })
const task = (label: string, hours: Cell, of: Cell) => ({ label, hours, project: of })

type Fields = Readonly<Record<string, Cell>>
const ROWS: Readonly<Record<string, readonly Fields[]>> = {
  [TAG]: [
    { name: 'red', rank: 1, archived: false },
    { name: 'green', rank: 2, archived: false },
    { name: 'blue', rank: 3, archived: true },
    { name: 'grey', rank: null, archived: false },
    { name: 'white', rank: 5, archived: false },
    { name: 'black', rank: 6, archived: true },
  ],
  [TEAM]: [
    team('North', 'Kiel', 30, null),
    team('South', 'Roma', 10, null),
    team('East', 'Kiel', 20, 1),
    team('West', 'Faro', 5, 2),
    team(null, 'Kiel', 40, 3),
    team('Deep', 'Oslo', 15, 5),
  ],
  [PROJECT]: [
    project('Alpha', 1, '2024-01-01', true, 1, [1]),
    project('Beta', 4, null, false, 2, [1, 2]),
    project('Gamma', 6, '2023-05-05', true, 3, [2, 3]),
    project('Delta', 8, '2022-02-02', null, 4, []),
    project('Epsilon', null, '2024-01-01', false, 5, [4]),
    project('Zeta', 3, null, true, null, [1, 4, 5]),
    project('Eta', 9, '2021-01-01', false, 3, [6]),
    project('Theta', 2, '2025-12-31', true, 6, [5]),
    project('Iota', 7, '2020-01-01', false, 1, [1, 2, 3, 4]),
  ],
  [TASK]: [
    ...[task('plan', 2, 1), task('build', 8, 1), task('test', 4, 2), task('ship', null, 2)],
    ...[task('draw', 6, 3), task('cut', 1, 3), task('weld', 9, 4), task('paint', 3, 5)],
    ...[
      task('sell', 7, 6),
      task('fix', 5, null),
      task('plan', 2, 7),
      task('move', 4, 8),
      task('sing', 10, 9),
    ],
  ],
  [BADGE]: [1, 2, 3, 4, null, 7].map((holder, index) => ({ code: `B${index + 1}`, holder })),
}

/** The users who create the records, in turn. */
export const CREATORS = ['ada', 'own', 'sums', 'three', 'masks'] as const

/** The records to create, in creation order, without system fields. */
export function plannedDataset(userIds: Readonly<Record<string, number>>): Dataset {
  const entries = Object.entries(ROWS).map(([model, rows]): [string, Row[]] => [
    model,
    rows.map((row, index) => ({
      ...{ ...row, id: index + 1 },
      createdBy: userIds[CREATORS[index % CREATORS.length] ?? ''] ?? null,
    })),
  ])
  return Object.fromEntries(entries)
}

/** Values of the fields that an extension adds to users. */
export const USERS: Readonly<Record<string, Fields>> = {
  fielded: { level: 4, home: 1, teams: [1, 3] },
  leveled: { level: 6, home: 3, teams: [] },
}
