// The changes of a record, the newest first.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Typography from '@mui/material/Typography'
import { useEffect } from 'react'
import type { ModelInfo } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'
import { ChangeEntry, type ChangeActions } from './change-entry.js'
import type { RecordHistory } from './use-history.js'

interface TimelineProps {
  readonly history: RecordHistory
  readonly model: ModelInfo
  readonly isBusy: boolean
  readonly actions: ChangeActions
}

export function Timeline({ history, model, isBusy, actions }: TimelineProps) {
  const { history: texts, common } = useTexts()
  const { changes, hasMore, isLoadingMore, loadMore } = history
  if (changes.length === 0) return <Typography color="text.secondary">{texts.none}</Typography>
  return (
    <>
      <NewerChanges history={history} />
      <Box component="ol" sx={{ m: 0, p: 0, display: 'flex', flexDirection: 'column', gap: 1.5 }}>
        {changes.map((change, index) => (
          <ChangeEntry
            key={change.seq}
            change={change}
            model={model}
            isNewest={index === 0}
            isBusy={isBusy}
            actions={actions}
          />
        ))}
      </Box>
      {hasMore && (
        <Button onClick={loadMore} disabled={isLoadingMore} variant="outlined" sx={{ mt: 2 }}>
          {isLoadingMore ? common.loading : common.more}
        </Button>
      )}
    </>
  )
}

/** Below this position a person reads older changes, which must not move. */
const TOP_PX = 40

/** Changes that have arrived are shown at once at the top of the page, and by a button elsewhere. */
function NewerChanges({ history: { waiting, showWaiting } }: { readonly history: RecordHistory }) {
  const { history } = useTexts()
  useEffect(() => {
    if (waiting.length > 0 && scrollY < TOP_PX) showWaiting()
  }, [waiting.length, showWaiting])
  const show = () => {
    showWaiting()
    scrollTo({ top: 0 })
  }
  return (
    // Without a height, so that the button moves nothing.
    <Box role="status" sx={{ position: 'sticky', top: 60, height: 0, zIndex: 1, textAlign: 'center' }}>
      {waiting.length > 0 && (
        <Button variant="contained" size="small" onClick={show}>
          {history.newer(waiting.length)}
        </Button>
      )}
    </Box>
  )
}
