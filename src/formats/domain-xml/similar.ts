import { didYouMean } from '../../model/values/did-you-mean.js'

/** For a name that is nowhere defined: the same in another package, or a similar one in its own. */
export function suggestName(name: string, known: Iterable<string>): string {
  const [packageName, last] = splitQualifiedName(name)
  const siblings: string[] = []
  for (const candidate of known) {
    const [candidatePackage, candidateLast] = splitQualifiedName(candidate)
    if (candidateLast === last) return ` (did you mean "${candidate}"?)`
    if (candidatePackage === packageName) siblings.push(candidateLast)
  }
  return didYouMean(last, siblings)
}

function splitQualifiedName(name: string): readonly [packageName: string, last: string] {
  const dot = name.lastIndexOf('.')
  return [name.slice(0, Math.max(dot, 0)), name.slice(dot + 1)]
}
