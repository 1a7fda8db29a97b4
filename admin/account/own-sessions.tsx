// The sessions of the person.
import Alert from '@mui/material/Alert'
import Button from '@mui/material/Button'
import { useQueryClient } from '@tanstack/react-query'
import { explainFailure } from '../layout/message-list.js'
import { Loading } from '../layout/loading.js'
import { showFailure, showMessage } from '../layout/message-list.js'
import { useTexts } from '../texts/texts.js'
import { AccountCard } from './account-card.js'
import { endOtherSessions, endSession, SESSIONS_KEY, useSessions } from './requests.js'
import { SessionList } from './session-list.js'

export function OwnSessions() {
  const { account } = useTexts()
  const queryClient = useQueryClient()
  const { data, error } = useSessions()
  const run = async (action: () => Promise<void>, text: string) => {
    try {
      await action()
      showMessage({ text, severity: 'success' })
    } catch (failure) {
      showFailure(failure)
    }
    await queryClient.invalidateQueries({ queryKey: SESSIONS_KEY })
  }
  return (
    <AccountCard title={account.sessions} text={account.sessionsText}>
      {error && <Alert severity="error">{explainFailure(error)}</Alert>}
      {!data && !error && <Loading />}
      {data && (
        <SessionList
          sessions={data}
          onEnd={({ id }) => void run(() => endSession(id), account.sessionEnded)}
        />
      )}
      {data && data.length > 1 && (
        <Button
          variant="outlined"
          color="error"
          sx={{ mt: 1 }}
          onClick={() => void run(endOtherSessions, account.othersEnded)}
        >
          {account.endOthers}
        </Button>
      )}
    </AccountCard>
  )
}
