/** Writes `http/docs/page` and `http/docs/swagger-ui` into the folder of a build. */
export function copyApiReference(dist: string): void

/** The names of the page's own files that browsers load. */
export function listPageFiles(): string[]
