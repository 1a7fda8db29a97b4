// Says why a version cannot be shown.
import Alert from '@mui/material/Alert'
import { GoneError } from 'verso-records/client'
import { explainFailure } from '../layout/message-list.js'
import { useTexts } from '../texts/texts.js'

export function VersionFailure({ error }: { readonly error: Error }) {
  const { history } = useTexts()
  const isGone = error instanceof GoneError
  return <Alert severity={isGone ? 'info' : 'error'}>{isGone ? history.gone : explainFailure(error)}</Alert>
}
