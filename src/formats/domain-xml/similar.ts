import { didYouMean } from '../../model/values/did-you-mean.js'

/** Suggests the same name in another package, or a similar one in its own package. */
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
