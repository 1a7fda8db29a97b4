// The rows of a list as a table.
import Checkbox from '@mui/material/Checkbox'
import Link from '@mui/material/Link'
import Paper from '@mui/material/Paper'
import Table from '@mui/material/Table'
import TableBody from '@mui/material/TableBody'
import TableCell from '@mui/material/TableCell'
import TableContainer from '@mui/material/TableContainer'
import TableHead from '@mui/material/TableHead'
import TableRow from '@mui/material/TableRow'
import TableSortLabel from '@mui/material/TableSortLabel'
import { alpha, type Theme } from '@mui/material/styles'
import { Link as RouterLink } from 'react-router'
import { FieldValue } from '../fields/field-value.js'
import type { FieldInfo } from '../service/model-info.js'
import { buildRecordPath } from '../service/paths.js'
import { useTexts } from '../texts/texts.js'
import { findSortKey } from './columns.js'
import { getRowName } from './row-name.js'
import { useOpenRecord } from './use-open-record.js'
import type { RecordList } from './use-record-list.js'
import type { Selection } from './use-selection.js'
import type { Row } from './use-shown-rows.js'

/** A selected row keeps its colour below the pointer, so that its links stay readable. */
const ROW = {
  cursor: 'pointer',
  '&.Mui-selected:hover': {
    bgcolor: ({ palette }: Theme) => alpha(palette.primary.main, palette.action.selectedOpacity),
  },
} as const
const OPENED_ROW = { ...ROW, outline: 2, outlineColor: 'primary.main', outlineOffset: -2 } as const

export interface RecordRowsProps {
  readonly list: RecordList
  /** Undefined if the person may do nothing with selected records. */
  readonly selection: Selection | undefined
}

export function RecordTable({ list, selection }: RecordRowsProps) {
  const { openedId, remember, openByClick } = useOpenRecord(list.model.name)
  return (
    <TableContainer component={Paper} variant="outlined">
      <Table size="small" aria-label={list.model.title}>
        <TableHead>
          <TableRow>
            {selection && <SelectAllCell selection={selection} />}
            {list.columns.map((column) => (
              <HeaderCell key={column.name} column={column} list={list} />
            ))}
          </TableRow>
        </TableHead>
        <TableBody>
          {list.rows.map((row) => (
            <TableRow
              key={row.id}
              hover
              selected={selection?.isSelected(row.id) === true}
              onClick={(event) => openByClick(event, row.id)}
              sx={row.id === openedId ? OPENED_ROW : ROW}
            >
              {selection && <SelectCell row={row} columns={list.columns} selection={selection} />}
              <RowCells row={row} list={list} onOpen={remember} isOpened={row.id === openedId} />
            </TableRow>
          ))}
        </TableBody>
      </Table>
    </TableContainer>
  )
}

const NUMBERS: readonly string[] = ['integer', 'long', 'decimal']

function isRightAligned({ kind, choices, isSystem }: FieldInfo): boolean {
  return NUMBERS.includes(kind) && choices === undefined && !isSystem
}

function HeaderCell({ column, list }: { readonly column: FieldInfo; readonly list: RecordList }) {
  const key = findSortKey(column)
  const isSorted = key !== undefined && list.sort.field === key
  const direction = list.sort.order === 'DESC' ? 'desc' : 'asc'
  const align = isRightAligned(column) ? 'right' : 'left'
  if (key === undefined) return <TableCell align={align}>{column.title}</TableCell>
  return (
    <TableCell align={align} sortDirection={isSorted ? direction : false} sx={{ whiteSpace: 'nowrap' }}>
      <TableSortLabel
        active={isSorted}
        direction={isSorted ? direction : 'asc'}
        onClick={() => list.setSort({ field: key, order: isSorted && direction === 'asc' ? 'DESC' : 'ASC' })}
      >
        {column.title}
      </TableSortLabel>
    </TableCell>
  )
}

function SelectAllCell({ selection }: { readonly selection: Selection }) {
  const { list } = useTexts()
  const { isAll, rows } = selection
  return (
    <TableCell padding="checkbox">
      <Checkbox
        size="small"
        checked={isAll}
        indeterminate={rows.length > 0 && !isAll}
        onChange={selection.toggleAll}
        slotProps={{ input: { 'aria-label': list.selectAll } }}
      />
    </TableCell>
  )
}

interface SelectCellProps {
  readonly row: Row
  readonly columns: readonly FieldInfo[]
  readonly selection: Selection
}

function SelectCell({ row, columns, selection }: SelectCellProps) {
  const { list } = useTexts()
  return (
    <TableCell padding="checkbox">
      <Checkbox
        size="small"
        checked={selection.isSelected(row.id)}
        onChange={() => selection.toggle(row.id)}
        slotProps={{ input: { 'aria-label': list.select(getRowName(row, columns)) } }}
      />
    </TableCell>
  )
}

interface RowCellsProps {
  readonly row: Row
  readonly list: RecordList
  readonly isOpened: boolean
  readonly onOpen: (id: number) => void
}

/** The first cell is a link, for the keyboard and for new tabs. A link cannot contain another one, so its text is plain. */
function RowCells({ row, list, isOpened, onOpen }: RowCellsProps) {
  const [first, ...others] = list.columns
  const cell = { maxWidth: 360, overflow: 'hidden', textOverflow: 'ellipsis', whiteSpace: 'nowrap' } as const
  return (
    <>
      {first && (
        <TableCell component="th" scope="row" sx={cell}>
          <Link
            component={RouterLink}
            to={buildRecordPath(list.model.name, row.id)}
            onClick={() => onOpen(row.id)}
            aria-current={isOpened ? 'true' : undefined}
            color="inherit"
            underline="hover"
            sx={{ fontWeight: 500 }}
          >
            {getRowName(row, list.columns)}
          </Link>
        </TableCell>
      )}
      {others.map((column) => (
        <TableCell key={column.name} align={isRightAligned(column) ? 'right' : 'left'} sx={cell}>
          <FieldValue field={column} value={row[column.name]} isShort />
        </TableCell>
      ))}
    </>
  )
}
