// One change of the timeline: who, when, and the changed fields.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Card from '@mui/material/Card'
import Chip from '@mui/material/Chip'
import Typography from '@mui/material/Typography'
import { useState } from 'react'
import type { Change } from 'verso-records/client'
import { findAction } from './change-action.js'
import { readModel, type ModelInfo } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'
import { nameAuthor } from '../texts/author-name.js'
import { ChangedField } from './changed-field.js'
import { RelativeTime } from '../texts/relative-time.js'

export interface ChangeActions {
  /** Undefined if the person may not restore versions. */
  readonly onRestore: ((version: number) => void) | undefined
  readonly onLook: (version: number) => void
  readonly onCompare: (change: Change) => void
}

interface ChangeEntryProps {
  readonly change: Change
  readonly model: ModelInfo
  readonly isNewest: boolean
  readonly isBusy: boolean
  readonly actions: ChangeActions
}

export function ChangeEntry({ change, model, isNewest, isBusy, actions }: ChangeEntryProps) {
  return (
    <Card component="li" sx={{ p: { xs: 1.5, sm: 2 }, listStyle: 'none' }}>
      <Heading change={change} isNewest={isNewest} />
      <ChangedFields change={change} model={model} />
      <EntryActions change={change} isNewest={isNewest} isBusy={isBusy} actions={actions} />
    </Card>
  )
}

const COLOURS = { create: 'success', update: 'default', delete: 'error' } as const

function Heading({ change, isNewest }: { readonly change: Change; readonly isNewest: boolean }) {
  const { history } = useTexts()
  const { action, by, on, version } = change
  return (
    <Box sx={{ display: 'flex', flexWrap: 'wrap', alignItems: 'center', columnGap: 1, rowGap: 0.5, mb: 1 }}>
      <Typography component="h2" variant="h3">
        {history.version(version)}
      </Typography>
      {action !== 'update' && (
        <Chip
          size="small"
          variant="outlined"
          color={COLOURS[action]}
          label={history.actions[findAction(change)]}
        />
      )}
      {isNewest && action !== 'delete' && <Chip size="small" label={history.current} />}
      <Typography variant="body2" color="text.secondary" sx={{ overflowWrap: 'anywhere' }}>
        {history.by(history.actions[findAction(change)], nameAuthor(by))}, <RelativeTime on={on} />
      </Typography>
    </Box>
  )
}

function ChangedFields({ change, model }: { readonly change: Change; readonly model: ModelInfo }) {
  const { history } = useTexts()
  const { action, purged } = change
  // The last values of a deleted record are long, and rarely wanted: the record is restored with them.
  const [isOpen, setOpen] = useState(action !== 'delete')
  const entries = listEntries(change, model)
  if (entries.length === 0)
    return (
      <Typography variant="body2" color="text.secondary">
        {purged ? history.purged : history.noFields}
      </Typography>
    )
  return (
    <>
      {action === 'delete' && (
        <Button size="small" onClick={() => setOpen(!isOpen)} aria-expanded={isOpen} sx={{ ml: -0.75 }}>
          {isOpen ? history.hideValues : history.showValues(entries.length)}
        </Button>
      )}
      {isOpen && (
        <Box component="dl" sx={{ m: 0 }}>
          {entries.map(({ field, before, after }) => (
            <ChangedField key={field.name} field={field} before={before} after={after} action={action} />
          ))}
        </Box>
      )}
    </>
  )
}

/** In the order of the model. Values that a created or deleted record did not have say nothing. */
function listEntries({ changes, action, model: name }: Change, { fields }: ModelInfo) {
  const known = new Set(fields.map((field) => field.name))
  const dropped = Object.keys(changes).filter((field) => !known.has(field))
  const { fields: droppedFields } = readModel({
    model: name,
    fields: dropped.map((field) => ({ name: field, type: 'STRING' })),
    perms: null,
  })
  return [...fields, ...droppedFields].flatMap((field) => {
    const change = changes[field.name]
    if (!change) return []
    const { before, after } = change
    const isShown = action === 'update' || (action === 'create' ? after : before) !== null
    return isShown ? [{ field, before, after }] : []
  })
}

function EntryActions({ change, isNewest, isBusy, actions }: Omit<ChangeEntryProps, 'model'>) {
  const { history } = useTexts()
  const { version, action } = change
  if (action === 'delete') return null
  return (
    <Box sx={{ display: 'flex', flexWrap: 'wrap', gap: 0.5, mt: 1, ml: -0.75 }}>
      {!isNewest && actions.onRestore && (
        <Button
          size="small"
          disabled={isBusy}
          onClick={() => actions.onRestore?.(version)}
          aria-label={history.restoreVersionLabel(version)}
        >
          {history.restoreVersion}
        </Button>
      )}
      <Button size="small" onClick={() => actions.onLook(version)} aria-label={history.lookAtLabel(version)}>
        {history.lookAt}
      </Button>
      {action === 'update' && (
        <Button
          size="small"
          onClick={() => actions.onCompare(change)}
          aria-label={history.compareLabel(version)}
        >
          {history.compareWithPrevious}
        </Button>
      )}
    </Box>
  )
}
