import { didYouMean } from '../../model/values/did-you-mean.js'

/** For a name that is nowhere defined: the same in another package, or a similar one in its own. */
export function suggestName(name: string, known: Iterable<string>): string {
  const [packageName, last] = split(name)
  const neighbours: string[] = []
  for (const candidate of known) {
    const [candidatePackage, candidateLast] = split(candidate)
    if (candidateLast === last) return ` (did you mean "${candidate}"?)`
    if (candidatePackage === packageName) neighbours.push(candidateLast)
  }
  return didYouMean(last, neighbours)
}

function split(name: string): readonly [packageName: string, last: string] {
  const dot = name.lastIndexOf('.')
  return [name.slice(0, Math.max(dot, 0)), name.slice(dot + 1)]
}
