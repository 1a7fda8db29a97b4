// What a list says about itself: how many records, what is selected, what has changed, why there is nothing.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import IconButton from '@mui/material/IconButton'
import Paper from '@mui/material/Paper'
import Typography from '@mui/material/Typography'
import { canCreate } from '../service/model-info.js'
import { CloseIcon } from '../layout/icons.js'
import { useTexts } from '../texts/texts.js'
import { DeleteSelected } from './delete-selected.js'
import { NewButton } from './list-actions.js'
import type { RecordList } from './use-record-list.js'
import type { Selection } from './use-selection.js'

/** Below the bar of the application, which has this height. */
const BAR_HEIGHT = 48
const STATUS_LINE = {
  position: 'sticky',
  top: BAR_HEIGHT,
  zIndex: 2,
  display: 'flex',
  alignItems: 'center',
  gap: 1,
  height: 40,
  overflow: 'hidden',
  whiteSpace: 'nowrap',
  bgcolor: 'background.default',
} as const

interface StatusLineProps {
  readonly list: RecordList
  readonly selection: Selection
}

/** Has a fixed height: rows must not move when somebody else changes the list, or when the first row is selected. It stays in sight. */
export function StatusLine({ list, selection }: StatusLineProps) {
  const texts = useTexts()
  const { total, hasChanged, showCurrent } = list
  const count = selection.rows.length
  return (
    <Box sx={STATUS_LINE}>
      {count > 0 && (
        <IconButton size="small" onClick={selection.clear} aria-label={texts.list.unselect}>
          <CloseIcon fontSize="small" />
        </IconButton>
      )}
      <Typography
        variant="body2"
        color="text.secondary"
        role="status"
        sx={{ overflow: 'hidden', textOverflow: 'ellipsis' }}
      >
        {count > 0 ? texts.list.selected(count) : total !== undefined && texts.common.records(total)}
      </Typography>
      {count > 0 && (
        <DeleteSelected
          model={list.model.name}
          columns={list.columns}
          rows={selection.rows}
          onDeleted={selection.clear}
          onChanged={showCurrent}
        />
      )}
      <Box role="status" sx={{ display: 'flex', alignItems: 'center', gap: 1, ml: 'auto' }}>
        {hasChanged && (
          <>
            <Typography variant="body2" sx={{ display: { xs: 'none', sm: 'block' } }}>
              {texts.list.changed}
            </Typography>
            <Button size="small" variant="outlined" onClick={showCurrent}>
              {texts.list.show}
            </Button>
          </>
        )}
      </Box>
    </Box>
  )
}

function isFiltered({ words, filters }: RecordList): boolean {
  return words !== '' || filters.length > 0
}

export function NoRecords({ list }: { readonly list: RecordList }) {
  const texts = useTexts()
  const { model, clearFilter } = list
  const isNarrowed = isFiltered(list)
  return (
    <Paper
      variant="outlined"
      sx={{
        p: 4,
        display: 'flex',
        flexDirection: 'column',
        alignItems: 'center',
        gap: 2,
        textAlign: 'center',
      }}
    >
      <Typography>{isNarrowed ? texts.list.noMatch : texts.list.empty}</Typography>
      {isNarrowed && (
        <Button variant="outlined" onClick={clearFilter}>
          {texts.list.clearFilters}
        </Button>
      )}
      {!isNarrowed && canCreate(model) && <NewButton model={model.name} />}
    </Paper>
  )
}

/** The words of the service, such as which field of the filter it does not know. */
export function ListFailure({ list }: { readonly list: RecordList }) {
  const texts = useTexts()
  return (
    <Alert
      severity="error"
      sx={{ my: 1, overflowWrap: 'anywhere' }}
      action={
        <>
          {isFiltered(list) && (
            <Button color="inherit" size="small" onClick={list.clearFilter}>
              {texts.list.clearFilters}
            </Button>
          )}
          <Button color="inherit" size="small" onClick={list.refetch}>
            {texts.common.retry}
          </Button>
        </>
      }
    >
      {list.error?.message}
    </Alert>
  )
}
