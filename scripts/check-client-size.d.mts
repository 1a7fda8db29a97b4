export interface ClientBundle {
  readonly code: string
  readonly imports: readonly string[]
  readonly gzipBytes: number
}
export function bundleClient(entry?: string): Promise<ClientBundle>
export function findBundleFaults(bundle: Pick<ClientBundle, 'imports' | 'gzipBytes'>): string[]
