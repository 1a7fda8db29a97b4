// The requests of the own account, and of the accounts of others for administrators.
import { useQuery } from '@tanstack/react-query'
import { client } from '../service/session.js'

export interface Me {
  readonly id: number
  readonly username: string
  readonly name: string | null
  readonly roles: readonly string[]
  readonly admin: boolean
  readonly lastLoginOn: string | null
}

export interface SessionInfo {
  readonly id: string
  readonly createdOn: string
  readonly lastSeenOn: string
  readonly address: string | null
  readonly agent: string | null
  readonly current: boolean
}

export interface KeyInfo {
  readonly id: number
  readonly name: string
  readonly prefix: string
  readonly expiresOn: string
  readonly lastUsedOn: string | null
  readonly createdOn: string
  readonly roles: readonly string[]
}

export interface NewKey {
  readonly name: string
  /** Absent: all roles of the person. */
  readonly roles?: readonly string[] | undefined
  readonly expiresOn: string
}

export interface ResetLink {
  readonly link: string
  readonly expiresOn: string
}

export const ME_KEY = ['verso', 'me']
export const SESSIONS_KEY = ['verso', 'sessions']
export const KEYS_KEY = ['verso', 'keys']

async function fetchList<T>(path: string, signal: AbortSignal): Promise<readonly T[]> {
  const { body } = await client.request('GET', path, { signal })
  return (body as { readonly data: readonly T[] }).data
}

export function useMe() {
  return useQuery({
    queryKey: ME_KEY,
    queryFn: async ({ signal }) => (await fetchList<Me>('/ws/me', signal))[0],
  })
}

export function useSessions() {
  return useQuery({
    queryKey: SESSIONS_KEY,
    queryFn: ({ signal }) => fetchList<SessionInfo>('/ws/me/sessions', signal),
  })
}

export function useKeys() {
  return useQuery({ queryKey: KEYS_KEY, queryFn: ({ signal }) => fetchList<KeyInfo>('/ws/me/keys', signal) })
}

export function buildUserSessionsKey(userId: number): readonly unknown[] {
  return ['verso', 'user-sessions', userId]
}

export function useUserSessions(userId: number) {
  return useQuery({
    queryKey: buildUserSessionsKey(userId),
    queryFn: ({ signal }) => fetchList<SessionInfo>(`/ws/users/${userId}/sessions`, signal),
  })
}

export async function changePassword(old: string, next: string): Promise<void> {
  await client.request('POST', '/ws/me/password', { body: { data: { old, new: next } } })
}

export async function endSession(id: string): Promise<void> {
  await client.request('DELETE', `/ws/me/sessions/${encodeURIComponent(id)}`)
}

export async function endOtherSessions(): Promise<void> {
  await client.request('DELETE', '/ws/me/sessions')
}

export async function endSessionsOfUser(userId: number): Promise<void> {
  await client.request('DELETE', `/ws/users/${userId}/sessions`)
}

export async function createResetLink(userId: number): Promise<ResetLink> {
  const { body } = await client.request('POST', `/ws/users/${userId}/reset`)
  return readFirst(body) as ResetLink
}

/** Returns the key itself, which no other answer contains. */
export async function createKey(key: NewKey): Promise<string> {
  const { body } = await client.request('POST', '/ws/me/keys', { body: { data: key } })
  return (readFirst(body) as { readonly key: string }).key
}

export async function deleteKey(id: number): Promise<void> {
  await client.request('DELETE', `/ws/me/keys/${id}`)
}

/** An answer has its data as a list of one, or as an object. */
function readFirst(body: unknown): unknown {
  const { data } = body as { readonly data: unknown }
  return Array.isArray(data) ? data[0] : data
}
