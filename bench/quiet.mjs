// A virtual machine shares its processors. A run in which the host took them away measures the host.

/** The part of the processor time that a run may lose. */
const MAX_STOLEN = 0.01
const MAX_ATTEMPTS = 2

/** Repeats rounds that lost processor time, up to twice as many in total. Returns the `count` rounds that lost least. A round is { name: run }. */
export async function measureQuietRounds(count, measureRound) {
  const rounds = []
  const isQuiet = (round) => findStolen(round) <= MAX_STOLEN
  while (rounds.filter(isQuiet).length < count && rounds.length < count * MAX_ATTEMPTS)
    rounds.push(await measureRound(rounds.length + 1))
  const chosen = [...rounds].sort((a, b) => findStolen(a) - findStolen(b)).slice(0, count)
  if (rounds.length > count)
    console.log(
      `${rounds.length - count} of ${rounds.length} rounds are left out, in which the host took most of the processor time: ` +
        `up to ${formatPercent(Math.max(...rounds.map(findStolen)))}; in the others up to ${formatPercent(Math.max(...chosen.map(findStolen)))}`,
    )
  return chosen
}

function findStolen(round) {
  return Math.max(...Object.values(round).map(({ stolen }) => stolen ?? 0))
}

function formatPercent(part) {
  return `${(part * 100).toFixed(1)} %`
}
