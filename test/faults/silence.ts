// Ways in which a server of PostgreSQL stops responding without closing a connection.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import type { Postgres } from '../postgres.js'
import { startProxy } from './proxy.js'

export interface SilentServer {
  /** The URL through which nodes reach the server. */
  readonly url: string
  begin(): void
  end(): void
  close(): Promise<void>
}

type Silence = (postgres: Postgres, url: string) => Promise<SilentServer>

export const SILENCES: Readonly<Record<string, Silence>> = {
  'all its processes are stopped': (postgres, url) => {
    const { pid } = postgres
    if (pid === undefined) throw new Error('the processes of this server are not known')
    const signal = (name: NodeJS.Signals) => {
      for (const each of [pid, ...findChildren(pid)]) {
        try {
          process.kill(each, name)
        } catch {
          // A session may have ended meanwhile.
        }
      }
    }
    return Promise.resolve({
      url,
      begin: () => signal('SIGSTOP'),
      end: () => signal('SIGCONT'),
      close: () => Promise.resolve(),
    })
  },
  'its packets are dropped': (_, url) => {
    const { port } = new URL(url)
    const rules = (command: '-A' | '-D') => {
      for (const side of ['--dport', '--sport'])
        execFileSync('iptables', [command, 'INPUT', '-i', 'lo', '-p', 'tcp', side, port, '-j', 'DROP'])
    }
    let isSilent = false
    const end = () => {
      if (isSilent) rules('-D')
      isSilent = false
    }
    const begin = () => {
      rules('-A')
      isSilent = true
    }
    return Promise.resolve({ url, begin, end, close: async () => Promise.resolve().then(end) })
  },
  'a proxy holds its bytes': async (_, url) => {
    const proxy = await startProxy(url)
    return {
      url: proxy.url,
      begin: () => proxy.hold(),
      end: () => proxy.deliver(),
      close: () => proxy.close(),
    }
  },
}

/** Dropping packets needs root and iptables. */
export function canDropPackets(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false
  try {
    execFileSync('iptables', ['-S', 'INPUT'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function findChildren(parent: number): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => findParent(pid) === parent)
}

function findParent(pid: number): number | undefined {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1])
  } catch {
    // The process has ended.
    return undefined
  }
}
