/** Stages the package and packs it. Returns the path of the tarball. */
export function makePackage(destination: string): string
