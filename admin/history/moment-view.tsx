// The record as it was: a slider over all its versions.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Card from '@mui/material/Card'
import Chip from '@mui/material/Chip'
import Slider from '@mui/material/Slider'
import Typography from '@mui/material/Typography'
import { useEffect, useState } from 'react'
import type { Change } from 'verso-records/client'
import { findAction } from './change-action.js'
import { Loading } from '../layout/loading.js'
import type { ModelInfo } from '../service/model-info.js'
import { getLocale, useTexts } from '../texts/texts.js'
import { nameAuthor } from '../texts/author-name.js'
import { HistoryValue } from './history-value.js'
import { formatExact, RelativeTime } from '../texts/relative-time.js'
import { useChangeAt, type RecordHistory } from './use-history.js'
import { useRecordAt } from './use-record-at.js'
import { VersionFailure } from './version-failure.js'
import { areEqualValues, listVersionFields } from './version-values.js'

type PlainRecord = Readonly<Record<string, unknown>>

interface MomentViewProps {
  readonly history: RecordHistory
  readonly model: ModelInfo
  /** The record as it is now; undefined if it is deleted. */
  readonly current: PlainRecord | undefined
  readonly version: number | undefined
  readonly onChoose: (version: number) => void
  readonly onRestore: ((version: number) => void) | undefined
  readonly isBusy: boolean
}

export function MomentView({
  history,
  model,
  current,
  version,
  onChoose,
  onRestore,
  isBusy,
}: MomentViewProps) {
  const offset = findOffset(history, version)
  const change = useChangeAt(history, offset)
  const isOfChange = change !== undefined && change.action !== 'delete'
  const { data: record, error } = useRecordAt(
    history.model,
    history.id,
    isOfChange ? change.version : undefined,
  )
  return (
    <Card sx={{ p: { xs: 2, sm: 3 } }}>
      <VersionSlider history={history} offset={offset} onChoose={onChoose} />
      <MomentHeading change={change} onRestore={offset === 0 ? undefined : onRestore} isBusy={isBusy} />
      {change?.action === 'delete' && <DeletedHere change={change} />}
      {error && <VersionFailure error={error} />}
      {isOfChange &&
        !error &&
        (record ? <Values model={model} record={record} current={current} /> : <Loading />)}
    </Card>
  )
}

function DeletedHere({ change }: { readonly change: Change }) {
  const { history } = useTexts()
  return <Alert severity="info">{history.deletedHere(nameAuthor(change.by))}</Alert>
}

/** Versions that are not loaded are where they must be if none is missing. */
function findOffset({ changes, total }: RecordHistory, version: number | undefined): number {
  if (version === undefined) return 0
  const loaded = changes.findIndex((change) => change.version === version)
  const guess = loaded >= 0 ? loaded : (changes[0]?.version ?? 0) - version
  return Math.min(Math.max(guess, 0), Math.max(total - 1, 0))
}

const SETTLE_MS = 200

interface VersionSliderProps {
  readonly history: RecordHistory
  readonly offset: number
  readonly onChoose: (version: number) => void
}

/** The oldest version is at the left. A version is read after the slider has rested on it. */
function VersionSlider({ history, offset, onChoose }: VersionSliderProps) {
  const { history: texts } = useTexts()
  const { total } = history
  const [position, setPosition] = useState(total - 1 - offset)
  useEffect(() => setPosition(total - 1 - offset), [total, offset])
  const pointed = useChangeAt(history, total - 1 - position)
  const version = pointed?.version
  useEffect(() => {
    if (version === undefined || position === total - 1 - offset) return
    const timer = setTimeout(() => onChoose(version), SETTLE_MS)
    return () => clearTimeout(timer)
  }, [version, position, total, offset, onChoose])
  return (
    <Box sx={{ px: 1 }}>
      <Slider
        aria-label={texts.slider}
        value={position}
        min={0}
        max={Math.max(total - 1, 0)}
        step={1}
        marks={total <= 40}
        disabled={total < 2}
        onChange={(_, value) => setPosition(value)}
        getAriaValueText={() => describeChange(pointed)}
        valueLabelDisplay="auto"
        valueLabelFormat={() => describeChange(pointed)}
      />
    </Box>
  )

  function describeChange(change: Change | undefined): string {
    if (!change) return '…'
    return texts.versionBy(change.version, nameAuthor(change.by), formatExact(change.on, getLocale()))
  }
}

interface MomentHeadingProps {
  readonly change: Change | undefined
  readonly onRestore: ((version: number) => void) | undefined
  readonly isBusy: boolean
}

function MomentHeading({ change, onRestore, isBusy }: MomentHeadingProps) {
  const { history } = useTexts()
  if (!change) return <Loading />
  const { version, action, by, on } = change
  return (
    <Box sx={{ display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: 1, mb: 2, minHeight: 40 }}>
      <Typography component="h2" variant="h2">
        {history.version(version)}
      </Typography>
      <Typography variant="body2" color="text.secondary" sx={{ flexGrow: 1, overflowWrap: 'anywhere' }}>
        {history.by(history.actions[findAction(change)], nameAuthor(by))}, <RelativeTime on={on} />
        {` (${formatExact(on, getLocale())})`}
      </Typography>
      {onRestore && action !== 'delete' && (
        <Button variant="outlined" size="small" disabled={isBusy} onClick={() => onRestore(version)}>
          {history.restoreVersion}
        </Button>
      )}
    </Box>
  )
}

interface ValuesProps {
  readonly model: ModelInfo
  readonly record: PlainRecord
  readonly current: PlainRecord | undefined
}

function Values({ model, record, current }: ValuesProps) {
  const { history } = useTexts()
  return (
    <Box component="dl" sx={{ m: 0, display: 'grid', gridTemplateColumns: { xs: '1fr', sm: '200px 1fr' } }}>
      {listVersionFields(model, record).map((field) => {
        const value = record[field.name]
        const isOther = current !== undefined && !areEqualValues(value, current[field.name])
        return (
          <Box key={field.name} sx={{ display: 'contents' }}>
            <Typography
              component="dt"
              variant="body2"
              color="text.secondary"
              sx={{ pt: 1, pr: 2, borderTop: 1, borderColor: 'divider', overflowWrap: 'anywhere' }}
            >
              {field.title}
            </Typography>
            <Typography
              component="dd"
              variant="body2"
              sx={{ m: 0, py: 1, minWidth: 0, borderTop: { xs: 0, sm: 1 }, borderColor: { sm: 'divider' } }}
            >
              <HistoryValue field={field} value={value} />
              {isOther && (
                <Chip size="small" variant="outlined" color="info" label={history.differs} sx={{ ml: 1 }} />
              )}
            </Typography>
          </Box>
        )
      })}
    </Box>
  )
}
