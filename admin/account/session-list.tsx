// Sessions: the program and the system, the address, and when it was used.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Chip from '@mui/material/Chip'
import Typography from '@mui/material/Typography'
import { RelativeTime } from '../texts/relative-time.js'
import { getTexts, useTexts } from '../texts/texts.js'
import { parseAgent } from './agent.js'
import type { SessionInfo } from './requests.js'

interface SessionListProps {
  readonly sessions: readonly SessionInfo[]
  /** Undefined if single sessions cannot be ended. */
  readonly onEnd?: ((session: SessionInfo) => void) | undefined
}

export function SessionList({ sessions, onEnd }: SessionListProps) {
  return (
    <Box component="ul" sx={{ m: 0, p: 0 }}>
      {sessions.map((session) => (
        <SessionItem key={session.id} session={session} onEnd={onEnd} />
      ))}
    </Box>
  )
}

interface SessionItemProps {
  readonly session: SessionInfo
  readonly onEnd: ((session: SessionInfo) => void) | undefined
}

function SessionItem({ session, onEnd }: SessionItemProps) {
  const { account } = useTexts()
  const { createdOn, lastSeenOn, address, agent, current } = session
  const name = describeAgent(agent)
  return (
    <Box component="li" sx={ITEM}>
      <Box sx={{ flexGrow: 1, minWidth: 0 }}>
        <Typography sx={{ overflowWrap: 'anywhere' }} title={agent ?? undefined}>
          {name}{' '}
          {current && <Chip size="small" color="primary" variant="outlined" label={account.thisSession} />}
        </Typography>
        <Typography variant="body2" color="text.secondary" sx={{ overflowWrap: 'anywhere' }}>
          {address !== null && `${address} · `}
          {account.signedIn} <RelativeTime on={createdOn} /> · {account.lastSeen}{' '}
          <RelativeTime on={lastSeenOn} />
        </Typography>
      </Box>
      {onEnd && !current && (
        <Button size="small" onClick={() => onEnd(session)} aria-label={account.endSessionLabel(name)}>
          {account.endSession}
        </Button>
      )}
    </Box>
  )
}

/** One line of a list, with a button at its end. */
export const ITEM = {
  display: 'flex',
  flexWrap: 'wrap',
  alignItems: 'center',
  gap: 1,
  py: 1.25,
  listStyle: 'none',
  borderTop: 1,
  borderColor: 'divider',
} as const

function describeAgent(agent: string | null): string {
  const { account } = getTexts()
  const parsed = parseAgent(agent)
  if (!parsed) return account.unknownAgent
  return parsed.system === undefined ? parsed.program : account.agentOn(parsed.program, parsed.system)
}
