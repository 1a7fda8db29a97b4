// What a person can do beside a list: add a record, see deleted ones, download all.
import Button from '@mui/material/Button'
import Tooltip from '@mui/material/Tooltip'
import { useState } from 'react'
import { Link as RouterLink } from 'react-router'
import { AddIcon, DownloadIcon, HistoryIcon } from '../layout/icons.js'
import { showFailure } from '../layout/message-list.js'
import { canCreate } from '../service/model-info.js'
import { buildDeletedPath, buildRecordPath } from '../service/paths.js'
import { useTexts } from '../texts/texts.js'
import { downloadRecords } from './export-records.js'
import type { RecordList } from './use-record-list.js'

export function ListActions({ list }: { readonly list: RecordList }) {
  const texts = useTexts()
  const { name, permissions } = list.model
  return (
    <>
      <Button color="inherit" component={RouterLink} to={buildDeletedPath(name)} startIcon={<HistoryIcon />}>
        {texts.list.deleted}
      </Button>
      {permissions.export && <ExportButton list={list} />}
      {canCreate(list.model) && <NewButton model={name} />}
    </>
  )
}

export function NewButton({ model }: { readonly model: string }) {
  const { list } = useTexts()
  return (
    <Button
      variant="contained"
      component={RouterLink}
      to={buildRecordPath(model, 'new')}
      startIcon={<AddIcon />}
    >
      {list.new}
    </Button>
  )
}

function ExportButton({ list }: { readonly list: RecordList }) {
  const texts = useTexts()
  const [isRunning, setRunning] = useState(false)
  const run = () => {
    setRunning(true)
    const fields = list.columns.map(({ name }) => name)
    void downloadRecords({ model: list.model, fields, filter: list.filter })
      .catch(showFailure)
      .finally(() => setRunning(false))
  }
  return (
    <Tooltip title={texts.list.exportHint} describeChild>
      <Button
        color="inherit"
        startIcon={<DownloadIcon />}
        loading={isRunning}
        loadingPosition="start"
        onClick={run}
      >
        {isRunning ? texts.list.exporting : texts.list.export}
      </Button>
    </Tooltip>
  )
}
