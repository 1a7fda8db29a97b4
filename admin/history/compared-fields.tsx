// The fields of two versions: a table on wide screens, one below the other on phones.
import Box from '@mui/material/Box'
import Table from '@mui/material/Table'
import TableBody from '@mui/material/TableBody'
import TableCell from '@mui/material/TableCell'
import TableHead from '@mui/material/TableHead'
import TableRow from '@mui/material/TableRow'
import Typography from '@mui/material/Typography'
import useMediaQuery from '@mui/material/useMediaQuery'
import type { FieldInfo } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'
import { isLongText } from './changed-field.js'
import { HistoryValue } from './history-value.js'
import { MarkedText } from './marked-text.js'

type PlainRecord = Readonly<Record<string, unknown>>
type Side = 'before' | 'after'

interface ComparedFieldsProps {
  readonly fields: readonly FieldInfo[]
  readonly sides: Readonly<Record<Side, PlainRecord>>
  /** Of the older and of the newer version. */
  readonly titles: readonly [string, string]
}

export function ComparedFields(props: ComparedFieldsProps) {
  const isWide = useMediaQuery('(min-width: 700px)')
  if (props.fields.length === 0) return null
  return isWide ? <ComparedTable {...props} /> : <ComparedStack {...props} />
}

function ComparedTable({ fields, sides, titles: [older, newer] }: ComparedFieldsProps) {
  const { history } = useTexts()
  return (
    <Table size="small" sx={{ tableLayout: 'fixed' }}>
      <TableHead>
        <TableRow>
          <TableCell sx={{ width: '22%' }}>{history.field}</TableCell>
          <TableCell>{older}</TableCell>
          <TableCell>{newer}</TableCell>
        </TableRow>
      </TableHead>
      <TableBody>
        {fields.map((field) => (
          <TableRow key={field.name}>
            <TableCell
              component="th"
              scope="row"
              sx={{ color: 'text.secondary', verticalAlign: 'top', overflowWrap: 'anywhere' }}
            >
              {field.title}
            </TableCell>
            {(['before', 'after'] as const).map((side) => (
              <TableCell key={side} sx={{ verticalAlign: 'top', overflowWrap: 'anywhere' }}>
                <SideValue field={field} sides={sides} side={side} />
              </TableCell>
            ))}
          </TableRow>
        ))}
      </TableBody>
    </Table>
  )
}

function ComparedStack({ fields, sides, titles: [older, newer] }: ComparedFieldsProps) {
  const titles = { before: older, after: newer }
  return (
    <>
      {fields.map((field) => (
        <Box key={field.name} component="section" sx={{ py: 1.5, borderTop: 1, borderColor: 'divider' }}>
          <Typography component="h2" variant="h3">
            {field.title}
          </Typography>
          <Box component="dl" sx={{ m: 0 }}>
            {(['before', 'after'] as const).map((side) => (
              <Box key={side} sx={{ mt: 1 }}>
                <Typography component="dt" variant="caption" color="text.secondary">
                  {titles[side]}
                </Typography>
                <Typography component="dd" variant="body2" sx={{ m: 0, overflowWrap: 'anywhere' }}>
                  <SideValue field={field} sides={sides} side={side} />
                </Typography>
              </Box>
            ))}
          </Box>
        </Box>
      ))}
    </>
  )
}

interface SideValueProps {
  readonly field: FieldInfo
  readonly sides: Readonly<Record<Side, PlainRecord>>
  readonly side: Side
}

function SideValue({ field, sides, side }: SideValueProps) {
  const before = sides.before[field.name]
  const after = sides.after[field.name]
  const isMarked =
    isLongText(field) &&
    typeof before === 'string' &&
    typeof after === 'string' &&
    before !== '' &&
    after !== ''
  if (isMarked) return <MarkedText before={before} after={after} side={side} />
  return <HistoryValue field={field} value={sides[side][field.name]} />
}
