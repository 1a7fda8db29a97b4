import type { FastifyInstance } from 'fastify'

/** Every path of a server and its methods, from the tree that the router prints. */
export function routesOf(server: FastifyInstance): Map<string, Set<string>> {
  const routes = new Map<string, Set<string>>()
  const above: string[] = []
  for (const line of server.printRoutes({ commonPrefix: false }).split('\n')) {
    const [, indent = '', segment = '', methods = ''] =
      /^([│ ]*)[└├]── (.*?)(?: \(([A-Z, ]+)\))?$/.exec(line) ?? []
    const depth = indent.length / 4
    above.splice(depth)
    above[depth] = segment
    if (methods === '') continue
    const path = withoutSlash(above.join(''))
    routes.set(path, new Set([...(routes.get(path) ?? []), ...methods.split(', ')]))
  }
  return routes
}

export function withoutSlash(path: string): string {
  return path.replace(/(?<=.)\/$/, '')
}
