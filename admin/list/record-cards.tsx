// The rows of a list as cards, for phones.
import Box from '@mui/material/Box'
import Card from '@mui/material/Card'
import Checkbox from '@mui/material/Checkbox'
import Link from '@mui/material/Link'
import MenuItem from '@mui/material/MenuItem'
import TextField from '@mui/material/TextField'
import { Link as RouterLink } from 'react-router'
import { FieldValue } from '../fields/field-value.js'
import { buildRecordPath } from '../service/paths.js'
import { useTexts } from '../texts/texts.js'
import { findSortKey } from './columns.js'
import type { RecordRowsProps } from './record-table.js'
import { getRowName } from './row-name.js'
import { useOpenRecord } from './use-open-record.js'
import type { RecordList } from './use-record-list.js'

export function RecordCards({ list, selection }: RecordRowsProps) {
  const texts = useTexts()
  const { openedId, remember, openByClick } = useOpenRecord(list.model.name)
  const [, ...others] = list.columns
  return (
    <Box
      component="ul"
      aria-label={list.model.title}
      sx={{ m: 0, p: 0, listStyle: 'none', display: 'flex', flexDirection: 'column', gap: 1 }}
    >
      {list.rows.map((row) => {
        const name = getRowName(row, list.columns)
        const isOpened = row.id === openedId
        return (
          <Card
            key={row.id}
            component="li"
            onClick={(event) => openByClick(event, row.id)}
            sx={{
              display: 'flex',
              p: 1.5,
              ...(isOpened ? { outline: 2, outlineColor: 'primary.main' } : {}),
            }}
          >
            {selection && (
              <Checkbox
                size="small"
                checked={selection.isSelected(row.id)}
                onChange={() => selection.toggle(row.id)}
                slotProps={{ input: { 'aria-label': texts.list.select(name) } }}
                sx={{ alignSelf: 'flex-start', mt: -1, ml: -1 }}
              />
            )}
            <Box sx={{ minWidth: 0, flexGrow: 1 }}>
              <Link
                component={RouterLink}
                to={buildRecordPath(list.model.name, row.id)}
                onClick={() => remember(row.id)}
                aria-current={isOpened ? 'true' : undefined}
                color="inherit"
                underline="hover"
                sx={{ fontWeight: 600, overflowWrap: 'anywhere' }}
              >
                {name}
              </Link>
              <Box
                component="dl"
                sx={{
                  m: 0,
                  display: 'grid',
                  gridTemplateColumns: 'minmax(6em, auto) 1fr',
                  columnGap: 1.5,
                  rowGap: 0.25,
                  fontSize: '.85rem',
                }}
              >
                {others.map((column) => (
                  <Box key={column.name} sx={{ display: 'contents' }}>
                    <Box component="dt" sx={{ color: 'text.secondary' }}>
                      {column.title}
                    </Box>
                    <Box component="dd" sx={{ m: 0, minWidth: 0 }}>
                      <FieldValue field={column} value={row[column.name]} isShort />
                    </Box>
                  </Box>
                ))}
              </Box>
            </Box>
          </Card>
        )
      })}
    </Box>
  )
}

const SEPARATOR = ' '

/** Cards have no column headers, so the order has an input of its own. */
export function SortChoice({ list }: { readonly list: RecordList }) {
  const texts = useTexts()
  const { sort, columns, setSort } = list
  const orders = [
    ['ASC', '↑', texts.list.ascending],
    ['DESC', '↓', texts.list.descending],
  ] as const
  const keys = columns.flatMap((column) => {
    const key = findSortKey(column)
    return key === undefined ? [] : { key, title: column.title }
  })
  const isListed = keys.some(({ key }) => key === sort.field)
  return (
    <TextField
      select
      label={texts.list.sortBy}
      value={isListed ? `${sort.field}${SEPARATOR}${sort.order}` : ''}
      onChange={({ target }) => {
        const [field = '', order] = target.value.split(SEPARATOR)
        setSort({ field, order: order === 'DESC' ? 'DESC' : 'ASC' })
      }}
      slotProps={{ select: { displayEmpty: true }, inputLabel: { shrink: true } }}
      sx={{ width: '100%' }}
    >
      <MenuItem value="">{texts.list.sortDefault}</MenuItem>
      {keys.flatMap(({ key, title }) =>
        orders.map(([order, arrow, label]) => (
          <MenuItem key={key + order} value={`${key}${SEPARATOR}${order}`}>
            {title} {arrow} {label}
          </MenuItem>
        )),
      )}
    </TextField>
  )
}
