// Leads to any page of a list.
import Box from '@mui/material/Box'
import IconButton from '@mui/material/IconButton'
import MenuItem from '@mui/material/MenuItem'
import SvgIcon from '@mui/material/SvgIcon'
import TextField from '@mui/material/TextField'
import Tooltip from '@mui/material/Tooltip'
import Typography from '@mui/material/Typography'
import { useState } from 'react'
import { useTexts } from '../texts/texts.js'

const SIZES: readonly number[] = [10, 25, 50, 100]

interface PagerProps {
  readonly total: number
  readonly page: number
  readonly perPage: number
  readonly onPage: (page: number) => void
  readonly onPerPage: (perPage: number) => void
}

export function Pager({ total, page, perPage, onPage, onPerPage }: PagerProps) {
  const { list } = useTexts()
  const last = Math.max(1, Math.ceil(total / perPage))
  const sizes = SIZES.includes(perPage) ? SIZES : [...SIZES, perPage]
  return (
    <Box
      component="nav"
      aria-label={list.pages}
      sx={{
        display: 'flex',
        flexWrap: 'wrap',
        alignItems: 'center',
        justifyContent: 'flex-end',
        gap: 1,
        mt: 2,
      }}
    >
      <TextField
        select
        label={list.perPage}
        value={perPage}
        onChange={({ target }) => onPerPage(Number(target.value))}
        sx={{ width: 128, mr: 'auto' }}
      >
        {sizes.map((size) => (
          <MenuItem key={size} value={size}>
            {size}
          </MenuItem>
        ))}
      </TextField>
      <Box sx={{ display: 'flex', alignItems: 'center', gap: 0.5 }}>
        <PageButton
          label={list.firstPage}
          isDisabled={page <= 1}
          onClick={() => onPage(1)}
          path="M17 6l-6 6 6 6M7 6v12"
        />
        <PageButton
          label={list.previousPage}
          isDisabled={page <= 1}
          onClick={() => onPage(page - 1)}
          path="M14 6l-6 6 6 6"
        />
        <PageInput key={page} page={page} last={last} onPage={onPage} />
        <Typography variant="body2" color="text.secondary" sx={{ whiteSpace: 'nowrap' }}>
          {list.ofPages(last)}
        </Typography>
        <PageButton
          label={list.nextPage}
          isDisabled={page >= last}
          onClick={() => onPage(page + 1)}
          path="M10 6l6 6-6 6"
        />
        <PageButton
          label={list.lastPage}
          isDisabled={page >= last}
          onClick={() => onPage(last)}
          path="M7 6l6 6-6 6M17 6v12"
        />
      </Box>
    </Box>
  )
}

interface PageButtonProps {
  readonly label: string
  /** The lines of the icon. */
  readonly path: string
  readonly isDisabled: boolean
  readonly onClick: () => void
}

/** Stays focusable on the last page, so that a person who presses it again and again does not lose the focus. */
function PageButton({ label, path, isDisabled, onClick }: PageButtonProps) {
  return (
    <Tooltip title={label}>
      <IconButton
        size="small"
        aria-label={label}
        aria-disabled={isDisabled}
        onClick={isDisabled ? undefined : onClick}
        sx={isDisabled ? { opacity: 0.4, cursor: 'default' } : {}}
      >
        <SvgIcon
          sx={{
            fill: 'none',
            stroke: 'currentColor',
            strokeWidth: 1.8,
            strokeLinecap: 'round',
            strokeLinejoin: 'round',
          }}
        >
          <path d={path} />
        </SvgIcon>
      </IconButton>
    </Tooltip>
  )
}

interface PageInputProps {
  readonly page: number
  readonly last: number
  readonly onPage: (page: number) => void
}

function PageInput({ page, last, onPage }: PageInputProps) {
  const { list } = useTexts()
  const [text, setText] = useState(String(page))
  const go = () => {
    const wanted = Math.min(last, Math.max(1, Math.trunc(Number(text))))
    if (Number.isNaN(wanted)) setText(String(page))
    else if (wanted !== page) onPage(wanted)
    else setText(String(page))
  }
  return (
    <TextField
      value={text}
      onChange={({ target }) => setText(target.value)}
      onBlur={go}
      onKeyDown={({ key }) => {
        if (key === 'Enter') go()
      }}
      fullWidth={false}
      slotProps={{
        htmlInput: {
          'aria-label': list.page,
          inputMode: 'numeric',
          size: Math.max(3, String(last).length),
          autoComplete: 'off',
        },
      }}
      sx={{ '& input': { textAlign: 'right', py: 0.75, px: 1 } }}
    />
  )
}
