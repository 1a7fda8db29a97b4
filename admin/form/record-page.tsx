// The page of one record: new, a copy, or stored.
import Alert from '@mui/material/Alert'
import Link from '@mui/material/Link'
import { useEffect, useState } from 'react'
import { Link as RouterLink, useLocation, useParams } from 'react-router'
import { NotFoundError } from 'verso-records/client'
import { explainFailure } from '../layout/message-list.js'
import { Loading } from '../layout/loading.js'
import { Page } from '../layout/page.js'
import { shortenName, toTitle, type ModelInfo } from '../service/model-info.js'
import { buildHistoryPath } from '../service/paths.js'
import { useModel } from '../service/models.js'
import { useTexts } from '../texts/texts.js'
import { BackLink } from '../layout/back-link.js'
import { findListAddress } from '../list/remembered-place.js'
import { openEditor } from '../editor/open-editor.js'
import type { RecordEditor } from '../editor/record-editor.js'
import { RecordForm } from './record-form.js'
import { useSaveReport } from './use-save-report.js'

export function RecordPage() {
  const { model: name = '', id = 'new' } = useParams()
  const { key } = useLocation()
  const { data: model, error } = useModel(name)
  // A description that cannot be read again, such as after the end of a session, must not close the form.
  if (!model) return error ? <Failure message={explainFailure(error)} model={name} /> : <Loading />
  // Another record is another form, with a state of its own.
  const form = id === 'new' ? key : id
  return <EditedRecord key={`${name}/${form}`} model={model} id={id === 'new' ? undefined : Number(id)} />
}

function EditedRecord({ model, id }: { readonly model: ModelInfo; readonly id: number | undefined }) {
  const { form } = useTexts()
  const [editor, setEditor] = useState<RecordEditor>()
  const [failure, setFailure] = useState<Error>()
  const report = useSaveReport(model)
  useEffect(() => {
    let opened: RecordEditor | undefined
    let isOver = false
    openEditor(model, id, report)
      .then((ready) => {
        opened = ready
        if (isOver) ready.stop()
        else setEditor(ready)
      })
      .catch((error: unknown) => setFailure(error instanceof Error ? error : new Error(String(error))))
    return () => {
      isOver = true
      opened?.stop()
    }
  }, [model, id, report])
  if (failure instanceof NotFoundError) return <Failure message={form.missing} model={model.name} id={id} />
  if (failure) return <Failure message={failure.message} model={model.name} />
  if (!editor) return <Loading />
  return <RecordForm editor={editor} />
}

interface FailureProps {
  readonly message: string
  readonly model: string
  readonly id?: number | undefined
}

function Failure({ message, model, id }: FailureProps) {
  const { common, form } = useTexts()
  return (
    <Page
      title={common.failed}
      isNarrow
      above={<BackLink to={findListAddress(model)} text={toTitle(shortenName(model))} />}
    >
      <Alert severity="warning">
        {message}{' '}
        {id !== undefined && (
          <>
            {form.wasDeleted}{' '}
            <Link component={RouterLink} to={buildHistoryPath(model, id)}>
              {form.history}
            </Link>
          </>
        )}
      </Alert>
    </Page>
  )
}
