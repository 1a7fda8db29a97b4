// Types of settings: each parses a text into a value, or returns undefined for an invalid text.
import { isIP } from 'node:net'
import { MAX_PASSWORD_BYTES, MIN_PASSWORD_CHARACTERS } from '../../model/catalog/auth-models.js'
import { countCharacters } from '../../model/values/value.js'
import type { Retention } from '../../service/context/settings.js'

export interface OptionType<T> {
  /** Placeholder after the flag in the help. A flag without one is a switch. */
  readonly placeholder?: string
  readonly parse: (text: string) => T | undefined
  /** Completes the sentence "… must be …" in an error message. */
  readonly mustBe: string
  /** The flag may be repeated; its values are separated by commas. */
  readonly isList?: boolean
  /** The value is never printed in a message. */
  readonly isSecret?: boolean
}

const HOUR_MS = 3_600_000
const UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: HOUR_MS, d: 24 * HOUR_MS } as const
const UNITS_BYTES = { '': 1, b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 } as const
const DURATION_EXAMPLES = ['500ms', '10s', '60m', '12h', '7d']
const PROXY_NAMES = new Set(['loopback', 'linklocal', 'uniquelocal'])

export const host: OptionType<string> = {
  placeholder: '<host>',
  mustBe: 'a host name or an IP address, such as localhost or 0.0.0.0',
  parse: (text) => {
    const bare = text.replace(/^\[(.*)\]$/, '$1')
    return isIP(bare) > 0 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(bare) ? bare : undefined
  },
}

export const database: OptionType<string> = {
  placeholder: '<url>',
  mustBe: 'sqlite:path/to/file, sqlite::memory: or postgres://user@host/database',
  isSecret: true,
  parse: (text) => {
    const isFile = /^sqlite:./.test(text)
    return isFile || (/^postgres(ql)?:\/\/./.test(text) && URL.canParse(text)) ? text : undefined
  },
}

export const fileOrFolder: OptionType<string> = {
  placeholder: '<path>',
  mustBe: 'a file or a folder',
  parse: (text) => text,
}

export const basePath: OptionType<string> = {
  placeholder: '<path>',
  mustBe: 'a path such as /verso, with letters, digits and . _ ~ -',
  parse: (text) => {
    const path = text.replace(/\/$/, '')
    return path === '' || /^(\/(?!\.{1,2}(\/|$))[\w.~-]+)+$/.test(path) ? path : undefined
  },
}

export const origin: OptionType<string> = {
  placeholder: '<url>',
  mustBe: 'http:// or https:// with a host and without a path, such as https://records.example.org',
  parse: parseOrigin,
}

export const origins: OptionType<readonly string[]> = {
  placeholder: '<origin>',
  mustBe: 'origins such as https://app.example.org, separated by commas',
  isList: true,
  parse: commaSeparated(parseOrigin),
}

export const proxies: OptionType<readonly string[]> = {
  placeholder: '<address>',
  mustBe: 'addresses, networks such as 10.0.0.0/8, loopback, linklocal or uniquelocal, separated by commas',
  isList: true,
  parse: commaSeparated((text) => (PROXY_NAMES.has(text) || isNetwork(text) ? text : undefined)),
}

export const hosts: OptionType<readonly string[]> = {
  placeholder: '<host>',
  mustBe: 'hosts, addresses or networks such as hooks.internal, 127.0.0.1 or 10.0.0.0/8, separated by commas',
  isList: true,
  parse: commaSeparated((text) => (isNetwork(text) || isHostName(text) ? text.toLowerCase() : undefined)),
}

export const password: OptionType<string> = {
  mustBe: `at least ${MIN_PASSWORD_CHARACTERS} characters and at most ${MAX_PASSWORD_BYTES} bytes long`,
  isSecret: true,
  parse: (text) => {
    const isFit =
      countCharacters(text) >= MIN_PASSWORD_CHARACTERS && Buffer.byteLength(text) <= MAX_PASSWORD_BYTES
    return isFit ? text : undefined
  },
}

/** A password that another service issued; every text is valid. */
export const anyPassword: OptionType<string> = {
  mustBe: 'a password',
  isSecret: true,
  parse: (text) => text,
}

export const toggle: OptionType<boolean> = {
  mustBe: 'true or false',
  parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
}

export function boundedInteger(min: number, max: number): OptionType<number> {
  return {
    placeholder: '<number>',
    mustBe: `a whole number from ${min} to ${max}`,
    parse: (text) => acceptInRange(/^\d{1,15}$/.test(text) ? Number(text) : NaN, min, max),
  }
}

export function byteSize(min: string, max: string): OptionType<number> {
  const bounds = [parseQuantity(min, UNITS_BYTES), parseQuantity(max, UNITS_BYTES)] as const
  return {
    placeholder: '<size>',
    mustBe: `a size from ${min} to ${max}, such as 512kb, 2mb or a number of bytes`,
    parse: (text) => acceptInRange(parseQuantity(text, UNITS_BYTES), ...bounds),
  }
}

export function duration(min: string, max: string): OptionType<number> {
  const bounds = [parseQuantity(min, UNITS_MS), parseQuantity(max, UNITS_MS)] as const
  const examples = DURATION_EXAMPLES.filter(
    (text) => acceptInRange(parseQuantity(text, UNITS_MS), ...bounds) !== undefined,
  )
  return {
    placeholder: '<time>',
    mustBe: `a time from ${min} to ${max}, such as ${examples.slice(0, -1).join(', ')} or ${examples.at(-1) ?? max}`,
    parse: (text) => acceptInRange(parseQuantity(text, UNITS_MS), ...bounds),
  }
}

export const retention: OptionType<Retention> = {
  placeholder: '<amount>',
  mustBe: 'all, a number of days such as 90d, or a number of versions such as 100v',
  parse: (text) => {
    const [, count, unit] = /^([1-9]\d{0,5})([dv])$/.exec(text) ?? []
    if (count !== undefined) return unit === 'd' ? { days: Number(count) } : { versions: Number(count) }
    return text === 'all' ? 'all' : undefined
  },
}

export function choice<const T extends string>(words: readonly T[]): OptionType<T> {
  return {
    placeholder: '<word>',
    mustBe: `one of ${words.join(', ')}`,
    parse: (text) => words.find((word) => word === text),
  }
}

/** Parses `10s` into 10000. Returns NaN if the number or the unit is invalid. */
function parseQuantity(text: string, units: Readonly<Record<string, number>>): number {
  const [, count, unit = ''] = /^(\d{1,15})([a-z]*)$/i.exec(text) ?? []
  return Number(count) * (units[unit.toLowerCase()] ?? NaN)
}

function acceptInRange(value: number, min: number, max: number): number | undefined {
  return value >= min && value <= max ? value : undefined
}

function commaSeparated<T>(
  parse: (text: string) => T | undefined,
): (text: string) => readonly T[] | undefined {
  return (text) => {
    const parsed = text.split(',').map((item) => parse(item.trim()))
    const valid = parsed.filter((item) => item !== undefined)
    return valid.length === parsed.length ? valid : undefined
  }
}

function parseOrigin(text: string): string | undefined {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return undefined
  const { origin, href } = new URL(text)
  return href === `${origin}/` ? origin : undefined
}

/** A name that ends in a number is an IP address, possibly a mistyped one. */
function isHostName(text: string): boolean {
  return /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text) && !/(^|\.)\d+$/.test(text)
}

function isNetwork(text: string): boolean {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const kind = isIP(address)
  return kind > 0 && Number(bits ?? 0) <= (kind === 4 ? 32 : 128)
}
