import Alert from '@mui/material/Alert'
import Button from '@mui/material/Button'
import LinearProgress from '@mui/material/LinearProgress'
import { useParams } from 'react-router'
import { explainFailure } from '../layout/message-list.js'
import { Page } from '../layout/page.js'
import { useModel } from '../service/models.js'
import { shortenName, toTitle } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'
import { RecordListView } from './record-list-view.js'

/** The list of the records of a model. */
export function ListPage() {
  const { common, list } = useTexts()
  const { model: name = '' } = useParams()
  const { data: model, error, refetch } = useModel(name)
  if (model?.permissions.read) return <RecordListView key={model.name} model={model} />
  const title = model?.title ?? toTitle(shortenName(name))
  const retry = (
    <Button color="inherit" onClick={() => void refetch()}>
      {common.retry}
    </Button>
  )
  return (
    <Page title={title}>
      {model && <Alert severity="info">{list.noPermission}</Alert>}
      {error && (
        <Alert severity="error" action={retry}>
          {explainFailure(error)}
        </Alert>
      )}
      {!model && !error && <LinearProgress aria-label={common.loading} />}
    </Page>
  )
}
