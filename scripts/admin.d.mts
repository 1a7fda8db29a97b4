/** Writes `admin` into the folder of a build, unless the one there is newer than every input. */
export function buildAdmin(dist: string): void
