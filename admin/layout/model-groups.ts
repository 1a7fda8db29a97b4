// The entries of the menu: which models there are, in which groups, and which of them a text finds.
import { findPackage, shortenName, toTitle } from '../service/model-info.js'

export interface MenuEntry {
  readonly model: string
  readonly title: string
  readonly packageName: string
  readonly isSystem: boolean
  /** Title and name in small letters, for the search. */
  readonly searched: string
}

export interface MenuGroup {
  readonly title: string
  readonly packageName: string
  readonly entries: readonly MenuEntry[]
}

const SYSTEM_PACKAGES = ['verso.', 'com.axelor.meta']
/** Parts of package names that say nothing about the models. */
const TECHNICAL_PARTS: readonly string[] = ['db', 'model', 'models']

/** System models come last. */
export function listEntries(names: readonly string[]): readonly MenuEntry[] {
  const entries = names.map((model) => {
    const title = toTitle(shortenName(model))
    const isSystem = SYSTEM_PACKAGES.some((beginning) => model.startsWith(beginning))
    return {
      model,
      title,
      isSystem,
      packageName: findPackage(model),
      searched: `${title} ${model}`.toLowerCase(),
    }
  })
  return entries.sort(
    (left, right) =>
      Number(left.isSystem) - Number(right.isSystem) ||
      (left.isSystem ? 0 : compareTexts(left.packageName, right.packageName)) ||
      compareTexts(left.title, right.title),
  )
}

function compareTexts(left: string, right: string): number {
  return left < right ? -1 : Number(left > right)
}

/** Every word must occur in the title or in the full name. */
export function findEntries(entries: readonly MenuEntry[], text: string): readonly MenuEntry[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  if (words.length === 0) return entries
  return entries.filter(({ searched }) => words.every((word) => searched.includes(word)))
}

/** Entries of one package are neighbours in the list. */
export function groupEntries(entries: readonly MenuEntry[], administration: string): readonly MenuGroup[] {
  const groups = new Map<string, MenuEntry[]>()
  for (const entry of entries) {
    const key = entry.isSystem ? administration : entry.packageName
    const members = groups.get(key)
    if (members) members.push(entry)
    else groups.set(key, [entry])
  }
  const titles = [...groups.keys()].map(shortenPackage)
  return [...groups].map(([packageName, members]) => {
    const short = shortenPackage(packageName)
    const isUnique = titles.filter((title) => title === short).length === 1
    return { title: isUnique ? short : packageName, packageName, entries: members }
  })
}

/** `com.axelor.contact.db` → `Contact`. */
function shortenPackage(packageName: string): string {
  const parts = packageName.split('.')
  const last = parts.findLast((part) => !TECHNICAL_PARTS.includes(part)) ?? packageName
  return toTitle(last)
}
