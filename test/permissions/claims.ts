// The claims of the permission matrix and of the comparison of two databases. Each file of tests chooses its sample.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENGINES, type Transport, type Engine } from '../targets.js'
import { openProjectFixture, type ProjectFixture } from './project-fixture.js'
import { compareReading, compareWriting, type Compared } from './matrix.js'
import { COMPAT_PROBES, PROBES, type Probe } from './probes.js'
import { describeDifference, findDifferences } from './compare-answers.js'
import { HIDERS, ITEM, openHiddenValuesFixture, type HiddenValuesFixture } from './hidden-values-fixture.js'

/** Replaces the samples of the `*.all.test.ts` by everything: half an hour or more. */
export const EVERY_CASE = process.env['VERSO_TEST_EVERY_CASE'] === '1'

const SHOWN = 20
const TIMEOUT = { timeout: 600_000 }
/** Answers about models do not depend on the records. */
const OF_MODELS = ['meta', 'did you mean', 'document']
/** The sample of the control role is larger, because not every request shows a difference. */
const CONTROL_SAMPLE = { every: 24, times: 2 }

type Every = Readonly<Record<Engine, Readonly<Record<Transport, number>>>>

/** Checks each role on each model over each transport against the reference. */
export function claimMatrix(every: { readonly read: Every; readonly written: Every }): void {
  const fixtures = new Map<Engine, ProjectFixture>()
  const fixtureOf = (engine: Engine): ProjectFixture => {
    const fixture = fixtures.get(engine)
    if (!fixture) throw new Error(`${engine} is not there`)
    return fixture
  }
  beforeAll(async () => {
    await Promise.all(ENGINES.map(async (engine) => fixtures.set(engine, await openProjectFixture(engine))))
  })
  afterAll(async () => {
    await Promise.all([...fixtures.values()].map((fixture) => fixture.close()))
  })

  const targets = ENGINES.flatMap((engine) =>
    (['direct', 'http'] as const).map((transport) => ({ engine, transport })),
  )
  describe.for(targets)('$engine, $transport', ({ engine, transport }) => {
    test('every role reads exactly what the reference permits', TIMEOUT, async () => {
      const [fixture, part] = [fixtureOf(engine), { every: every.read[engine][transport], from: 0 }]
      const compared = await compareReading(fixture, transport, part, (role) => fixture.as(role, transport))
      expectNone(`${engine}, ${transport}, read`, compared)
    })

    test('every role writes exactly what the reference permits', TIMEOUT, async () => {
      const [fixture, part] = [fixtureOf(engine), { every: every.written[engine][transport], from: 0 }]
      const compared = await compareWriting(fixture, part, (role) => fixture.as(role, transport))
      expectNone(`${engine}, ${transport}, written`, compared)
    })
  })
}

function expectNone(what: string, { count, differences }: Compared): void {
  console.info(`${what}: ${count} cells were compared`)
  expect(differences.length, differences.slice(0, SHOWN).join('\n')).toBe(0)
}

interface Setting {
  readonly engine: Engine
  readonly compat: 'axelor' | 'none'
  /** Takes every n-th request of each method, but not fewer than `few`; all if there are no more. */
  readonly every: number
  readonly few: number
  /** The roles that ask; all by default. */
  readonly hiders?: readonly string[]
}

/** Checks that no role learns a hidden value: two databases that differ only in hidden values answer identically, to the byte. */
export function claimNoLeak(settings: readonly Setting[]): void {
  describe.for(settings)('$engine, compat $compat', ({ engine, compat, hiders = HIDERS, ...part }) => {
    const all = compat === 'none' ? PROBES : [...PROBES, ...COMPAT_PROBES]
    let left: HiddenValuesFixture
    let right: HiddenValuesFixture
    beforeAll(async () => {
      const open = (side: 'left' | 'right') => openHiddenValuesFixture(engine, side, { compat })
      ;[left, right] = await Promise.all([open('left'), open('right')])
    })
    afterAll(async () => {
      await Promise.all([left.close(), right.close()])
    })

    test.for(hiders)(
      'the role %s gets identical answers from two databases that differ in hidden values',
      TIMEOUT,
      async (role) => {
        // Each role takes another sample: together they cover more.
        const sent = sampleOf(all, part, HIDERS.indexOf(role)).filter((probe) => isHiddenFrom(role, probe))
        const differences = await findDifferences(left, right, role, sent)
        console.info(
          `${engine}, ${compat}, ${role}: ${sent.length} requests to two databases, ${differences.length} differ`,
        )
        expect(differences.length, differences.slice(0, SHOWN).map(describeDifference).join('\n')).toBe(0)
      },
    )

    test(
      'the control role, which may read everything, gets different answers by each method',
      TIMEOUT,
      async () => {
        const every = Math.min(part.every, CONTROL_SAMPLE.every)
        const probes = sampleOf(all, { every, few: part.few * CONTROL_SAMPLE.times }, 0)
        const methodsThatDiffer = new Set(
          (await findDifferences(left, right, 'control', probes)).map(({ probe }) => probe.by),
        )
        const methods = new Set(probes.map(({ by }) => by))
        expect([...methods].filter((by) => !methodsThatDiffer.has(by) && !OF_MODELS.includes(by))).toEqual([])
      },
    )
  })
}

/**
 * The visibility of past values depends on related records as they are today: since the yard is open, `lately` sees the past of
 * item 9. So `lately` is asked only about the past of item 8.
 */
function isHiddenFrom(role: string, { isPast, path }: Probe): boolean {
  return role !== 'lately' || isPast !== true || path.startsWith(`/ws/rest/${ITEM}/8`)
}

/** Samples each method, so that none is left without requests. */
function sampleOf(
  probes: readonly Probe[],
  { every, few }: Pick<Setting, 'every' | 'few'>,
  from: number,
): readonly Probe[] {
  const totals = new Map<string, number>()
  for (const { by } of probes) totals.set(by, (totals.get(by) ?? 0) + 1)
  const counts = new Map<string, number>()
  return probes.filter(({ by }) => {
    const count = counts.get(by) ?? 0
    counts.set(by, count + 1)
    const step = Math.min(every, Math.max(1, Math.floor((totals.get(by) ?? 0) / few)))
    return (count + from) % step === 0
  })
}
