import type { Change } from 'verso-records/client'

/** What a change did, in words for people. A record that is created again was restored. */
export function findAction({ action, version }: Change): Change['action'] | 'restore' {
  return action === 'create' && version > 0 ? 'restore' : action
}
