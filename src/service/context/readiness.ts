// Warnings and facts that parts of the service add to the body of `/readyz`.
import type { Json } from '../../model/values/value.js'

export interface ReadinessReport {
  /** Sentences for operators about problems that do not keep the node from serving. Everybody can read them. */
  readonly warnings?: readonly string[]
  /** Values by name, such as the time of the last backup. */
  readonly facts?: Readonly<Record<string, Json>>
}

/** Reports from memory: `/readyz` answers within a second, also if the database does not answer. */
export type ReadinessSource = () => ReadinessReport

/**
 * The parts of an App that report to `/readyz`.
 *
 * @example
 * app.readiness.add(() => (offsetMs > 2_000 ? { warnings: ['The clock of this node is 3 s ahead of the database'] } : {}))
 */
export class ReadinessSources {
  readonly #sources = new Set<ReadinessSource>()

  /** Returns a function that removes the source. */
  add(source: ReadinessSource): () => void {
    this.#sources.add(source)
    return () => {
      this.#sources.delete(source)
    }
  }

  /** All facts, and `warnings` if there are any, in the order in which the sources were added. */
  collect(): Readonly<Record<string, Json>> {
    const reports = [...this.#sources].map((source) => source())
    const warnings = reports.flatMap((report) => report.warnings ?? [])
    const facts = reports.flatMap((report) => Object.entries(report.facts ?? {}))
    return { ...Object.fromEntries(facts), ...(warnings.length > 0 ? { warnings } : {}) }
  }
}
