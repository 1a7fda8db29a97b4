// Reads a container file. It knows the instructions that deploy/Dockerfile uses, and rejects every other one.

export interface ContainerStage {
  readonly image: string
  readonly name: string | undefined
  readonly steps: readonly BuildStep[]
}

export type BuildStep =
  | { readonly kind: 'run'; readonly command: string }
  | {
      readonly kind: 'copy'
      readonly fromStage: string | undefined
      readonly from: string
      readonly to: string
    }
  | { readonly kind: 'workdir'; readonly path: string }
  | { readonly kind: 'env'; readonly name: string; readonly value: string }
  | { readonly kind: 'user'; readonly uid: number; readonly gid: number }
  | { readonly kind: 'volume'; readonly path: string }
  | { readonly kind: 'expose'; readonly port: number }
  | { readonly kind: 'healthcheck' | 'entrypoint' | 'cmd'; readonly words: readonly string[] }

const PARSERS: Readonly<Record<string, (rest: string) => BuildStep>> = {
  RUN: (rest) => ({ kind: 'run', command: match(rest, /^([^[].*)$/)[0] }),
  COPY: (rest) => {
    const [fromStage, from, to] = match(rest, /^(?:--from=(\w+) )?([\w./]+) ([\w./]+)$/)
    return { kind: 'copy', fromStage: fromStage || undefined, from, to }
  },
  WORKDIR: (rest) => ({ kind: 'workdir', path: match(rest, /^(\/[\w/]+)$/)[0] }),
  ENV: (rest) => {
    const [name, value] = match(rest, /^([A-Z_]+)=([\w/:.$]+)$/)
    return { kind: 'env', name, value }
  },
  USER: (rest) => {
    const [uid, gid] = match(rest, /^(\d+):(\d+)$/)
    return { kind: 'user', uid: Number(uid), gid: Number(gid) }
  },
  VOLUME: (rest) => ({ kind: 'volume', path: match(rest, /^(\/[\w/]+)$/)[0] }),
  EXPOSE: (rest) => ({ kind: 'expose', port: Number(match(rest, /^(\d+)$/)[0]) }),
  HEALTHCHECK: (rest) => {
    const [words] = match(rest, /^(?:--(?:interval|timeout|start-period|retries)=\w+ )+CMD (\[.*\])$/)
    return { kind: 'healthcheck', words: parseWords(words) }
  },
  ENTRYPOINT: (rest) => ({ kind: 'entrypoint', words: parseWords(rest) }),
  CMD: (rest) => ({ kind: 'cmd', words: parseWords(rest) }),
}

export function parseContainerFile(text: string): ContainerStage[] {
  const stages: (ContainerStage & { readonly steps: BuildStep[] })[] = []
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [instruction, rest] = match(line, /^([A-Z]+) (.*)$/)
    if (instruction === 'FROM') {
      const [image, name] = match(rest, /^([\w:.-]+)(?: AS (\w+))?$/)
      stages.push({ image, name: name || undefined, steps: [] })
      continue
    }
    const parse = PARSERS[instruction]
    if (!parse) throw new Error(`${instruction} is not an instruction that this test knows`)
    const stage = stages.at(-1)
    if (!stage) throw new Error(`${line} comes before FROM`)
    stage.steps.push(parse(rest))
  }
  return stages
}

/** The names that an ignore file permits: it excludes everything first, and then lists exceptions. */
export function parseIgnoreFile(text: string): (name: string) => boolean {
  const [all, ...exceptions] = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  if (all !== '*') throw new Error('the ignore file must exclude everything first')
  const patterns = exceptions.map((line) => {
    const [name] = match(line, /^!([\w.*-]+)$/)
    return new RegExp(`^${name.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`)
  })
  return (name) => patterns.some((pattern) => pattern.test(name))
}

/** Returns the groups; an optional one that is absent becomes an empty text. */
function match(text: string, pattern: RegExp): [string, string, string] {
  const found = pattern.exec(text)
  if (!found) throw new Error(`"${text}" is not in the form that this test knows: ${String(pattern)}`)
  const [, first = '', second = '', third = ''] = found
  return [first, second, third]
}

function parseWords(json: string): string[] {
  const words: unknown = JSON.parse(json)
  if (!Array.isArray(words) || !words.every((word) => typeof word === 'string'))
    throw new Error(`"${json}" is not a list of words`)
  return words
}
