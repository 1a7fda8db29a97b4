import type { DatabaseMeasures } from '../../store/engine/measures.js'

const NAME = 'verso_group_commit_size'
const BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256]

/** Renders the sizes of group commits as a histogram. The database counts them, and a histogram of prom-client cannot take over counts. */
export function renderGroupSizes(measures: DatabaseMeasures | undefined): string {
  if (!measures) return ''
  const sizes = [...measures.groupSizes]
  const countUpTo = (max: number) =>
    sizes.reduce((sum, [size, count]) => (size <= max ? sum + count : sum), 0)
  const sum = sizes.reduce((total, [size, count]) => total + size * count, 0)
  return [
    `# HELP ${NAME} Transactions that shared a commit.`,
    `# TYPE ${NAME} histogram`,
    ...BUCKETS.map((le) => `${NAME}_bucket{le="${le}"} ${countUpTo(le)}`),
    `${NAME}_bucket{le="+Inf"} ${countUpTo(Infinity)}`,
    `${NAME}_sum ${sum}`,
    `${NAME}_count ${countUpTo(Infinity)}`,
    '',
    '',
  ].join('\n')
}
