export interface ClientBundle {
  readonly code: string
  readonly imports: readonly string[]
  /** Files in the bundle. */
  readonly modules: readonly string[]
  readonly gzipBytes: number
}
export function bundleClient(entry?: string): Promise<ClientBundle>
export function findBundleFaults(bundle: Pick<ClientBundle, 'imports' | 'modules' | 'gzipBytes'>): string[]
