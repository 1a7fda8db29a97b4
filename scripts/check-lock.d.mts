export interface LockEntry {
  name?: string
  resolved?: string
  hasInstallScript?: boolean
  optionalDependencies?: Record<string, string>
}
export function findFaults(
  lock: { packages: Record<string, LockEntry> },
  manifest: { allowScripts?: Record<string, boolean> },
): string[]
