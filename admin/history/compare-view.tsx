// Two versions of a record side by side.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Card from '@mui/material/Card'
import FormControlLabel from '@mui/material/FormControlLabel'
import LinearProgress from '@mui/material/LinearProgress'
import MenuItem from '@mui/material/MenuItem'
import Switch from '@mui/material/Switch'
import TextField from '@mui/material/TextField'
import Typography from '@mui/material/Typography'
import { useState } from 'react'
import type { Change } from 'verso-records/client'
import type { ModelInfo } from '../service/model-info.js'
import { useLocale, useTexts } from '../texts/texts.js'
import { nameAuthor } from '../texts/author-name.js'
import { ComparedFields } from './compared-fields.js'
import { formatExact } from '../texts/relative-time.js'
import type { RecordHistory } from './use-history.js'
import { useRecordAt } from './use-record-at.js'
import { VersionFailure } from './version-failure.js'
import { areEqualValues, listVersionFields } from './version-values.js'

export interface ComparedVersions {
  readonly older: number | undefined
  readonly newer: number | undefined
}

interface CompareViewProps {
  readonly history: RecordHistory
  readonly model: ModelInfo
  readonly versions: ComparedVersions
  readonly onChoose: (versions: ComparedVersions) => void
}

export function CompareView({ history, model, versions, onChoose }: CompareViewProps) {
  const { history: texts, common } = useTexts()
  // A delete has no values to compare.
  const changes = history.changes.filter(({ action }) => action !== 'delete')
  const newer = versions.newer ?? changes[0]?.version
  const older = versions.older ?? changes[1]?.version
  if (newer === undefined || older === undefined)
    return <Typography color="text.secondary">{texts.oneVersion}</Typography>
  return (
    <Card sx={{ p: { xs: 2, sm: 3 } }}>
      <Box sx={{ display: 'grid', gridTemplateColumns: { xs: '1fr', sm: '1fr 1fr' }, gap: 2 }}>
        <VersionSelect
          label={texts.olderVersion}
          changes={changes}
          version={older}
          onChange={(version) => onChoose({ older: version, newer })}
        />
        <VersionSelect
          label={texts.newerVersion}
          changes={changes}
          version={newer}
          onChange={(version) => onChoose({ older, newer: version })}
        />
      </Box>
      {history.hasMore && (
        <Button size="small" onClick={history.loadMore} disabled={history.isLoadingMore} sx={{ mt: 1 }}>
          {history.isLoadingMore ? common.loading : texts.olderVersions}
        </Button>
      )}
      <Comparison history={history} model={model} older={older} newer={newer} />
    </Card>
  )
}

interface VersionSelectProps {
  readonly label: string
  readonly changes: readonly Change[]
  readonly version: number
  readonly onChange: (version: number) => void
}

function VersionSelect({ label, changes, version, onChange }: VersionSelectProps) {
  const { history } = useTexts()
  const locale = useLocale()
  const isLoaded = changes.some((change) => change.version === version)
  return (
    <TextField
      select
      label={label}
      value={version}
      onChange={(event) => onChange(Number(event.target.value))}
    >
      {!isLoaded && <MenuItem value={version}>{history.version(version)}</MenuItem>}
      {changes.map((change) => (
        <MenuItem key={change.seq} value={change.version} sx={{ whiteSpace: 'normal' }}>
          {history.versionBy(change.version, nameAuthor(change.by), formatExact(change.on, locale))}
        </MenuItem>
      ))}
    </TextField>
  )
}

interface ComparisonProps {
  readonly history: RecordHistory
  readonly model: ModelInfo
  readonly older: number
  readonly newer: number
}

function Comparison({ history: { model: name, id }, model, older, newer }: ComparisonProps) {
  const { history } = useTexts()
  const [isWhole, setWhole] = useState(false)
  const before = useRecordAt(name, id, older)
  const after = useRecordAt(name, id, newer)
  const error = before.error ?? after.error
  if (error) return <VersionFailure error={error} />
  if (!before.data || !after.data) return <LinearProgress sx={{ mt: 2 }} />
  const sides = { before: before.data, after: after.data }
  const fields = listVersionFields(model, sides.before, sides.after)
  const different = fields.filter(
    (field) => !areEqualValues(sides.before[field.name], sides.after[field.name]),
  )
  return (
    <Box sx={{ mt: 1 }}>
      <FormControlLabel
        control={<Switch checked={isWhole} onChange={(_, isChecked) => setWhole(isChecked)} />}
        label={history.allFields}
      />
      {different.length === 0 && (
        <Alert severity="info" sx={{ my: 1 }}>
          {history.noDifference}
        </Alert>
      )}
      <ComparedFields
        fields={isWhole ? fields : different}
        sides={sides}
        titles={[history.version(older), history.version(newer)]}
      />
    </Box>
  )
}
