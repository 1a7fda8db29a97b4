// What administrators can do for another account: a reset link, and the end of its sessions.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Typography from '@mui/material/Typography'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { explainFailure } from '../layout/message-list.js'
import { ConfirmDialog } from '../layout/confirm-dialog.js'
import { KeyIcon } from '../layout/icons.js'
import { showFailure, showMessage } from '../layout/message-list.js'
import { useTexts } from '../texts/texts.js'
import { AccountCard } from './account-card.js'
import {
  buildUserSessionsKey,
  createResetLink,
  endSessionsOfUser,
  useMe,
  useUserSessions,
} from './requests.js'
import { SessionList } from './session-list.js'
import { ShownOnce } from './shown-once.js'

/** Shows nothing to people who are not administrators: the service would reject the requests. */
export function UserActions({ userId }: { readonly userId: number }) {
  const { account } = useTexts()
  const { data: me } = useMe()
  if (me?.admin !== true) return null
  return (
    <Box sx={{ mt: 2 }}>
      <AccountCard title={account.userTitle}>
        <ResetLinkAction userId={userId} />
        <UserSessions userId={userId} />
      </AccountCard>
    </Box>
  )
}

function ResetLinkAction({ userId }: { readonly userId: number }) {
  const { account } = useTexts()
  const [link, setLink] = useState<string | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const create = async () => {
    setBusy(true)
    try {
      setLink((await createResetLink(userId)).link)
    } catch (error) {
      showFailure(error)
    }
    setBusy(false)
  }
  return (
    <Box sx={{ mb: 2 }}>
      <Typography variant="body2" color="text.secondary" sx={{ mb: 1 }}>
        {account.linkText}
      </Typography>
      {link === undefined ? (
        <Button variant="outlined" startIcon={<KeyIcon />} disabled={isBusy} onClick={() => void create()}>
          {account.createLink}
        </Button>
      ) : (
        <ShownOnce
          label={account.linkValue}
          value={link}
          warning={account.linkOnce}
          onDone={() => setLink(undefined)}
        />
      )}
    </Box>
  )
}

function UserSessions({ userId }: { readonly userId: number }) {
  const { account } = useTexts()
  const queryClient = useQueryClient()
  const { data, error } = useUserSessions(userId)
  const [isAsked, setAsked] = useState(false)
  const end = async () => {
    setAsked(false)
    try {
      await endSessionsOfUser(userId)
      showMessage({ text: account.allEnded, severity: 'success' })
    } catch (failure) {
      showFailure(failure)
    }
    await queryClient.invalidateQueries({ queryKey: buildUserSessionsKey(userId) })
  }
  return (
    <>
      <Typography component="h3" variant="h3" sx={{ mb: 1 }}>
        {account.userSessions}
      </Typography>
      {error && <Alert severity="error">{explainFailure(error)}</Alert>}
      {data?.length === 0 && <Typography color="text.secondary">{account.noSessions}</Typography>}
      {data && data.length > 0 && (
        <>
          <SessionList sessions={data} />
          <Button variant="outlined" color="error" sx={{ mt: 1 }} onClick={() => setAsked(true)}>
            {account.endAll}
          </Button>
        </>
      )}
      <ConfirmDialog
        isOpen={isAsked}
        title={account.endAllTitle}
        text={account.endAllText}
        confirmLabel={account.endAll}
        onConfirm={() => void end()}
        onCancel={() => setAsked(false)}
      />
    </>
  )
}
