import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Divider from '@mui/material/Divider'
import ListItemText from '@mui/material/ListItemText'
import Menu from '@mui/material/Menu'
import MenuItem from '@mui/material/MenuItem'
import { useState } from 'react'
import { CheckIcon, ColumnsIcon } from '../layout/icons.js'
import type { FieldInfo } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'

interface ColumnsMenuProps {
  readonly possible: readonly FieldInfo[]
  readonly chosen: readonly FieldInfo[]
  /** Undefined means the default columns. */
  readonly onChange: (names: readonly string[] | undefined) => void
}

export function ColumnsMenu({ possible, chosen, onChange }: ColumnsMenuProps) {
  const { list } = useTexts()
  const [anchor, setAnchor] = useState<HTMLElement | null>(null)
  // The address follows a little later, and people click fast.
  const [names, setNames] = useState<ReadonlySet<string>>(new Set())
  const open = (button: HTMLElement) => {
    setNames(new Set(chosen.map(({ name }) => name)))
    setAnchor(button)
  }
  const toggle = (name: string) => {
    const isRemoved = names.has(name)
    // A table needs a column.
    if (isRemoved && names.size === 1) return
    const changed = possible
      .map((field) => field.name)
      .filter((each) => (each === name ? !isRemoved : names.has(each)))
    setNames(new Set(changed))
    onChange(changed)
  }
  const reset = () => {
    setAnchor(null)
    onChange(undefined)
  }
  return (
    <>
      <Button
        color="inherit"
        startIcon={<ColumnsIcon />}
        aria-haspopup="menu"
        aria-expanded={anchor !== null}
        onClick={(event) => open(event.currentTarget)}
      >
        {list.columns}
      </Button>
      <Menu
        anchorEl={anchor}
        open={anchor !== null}
        onClose={() => setAnchor(null)}
        slotProps={{ paper: { sx: { maxHeight: '70vh' } } }}
      >
        {possible.map(({ name, title }) => (
          <MenuItem
            key={name}
            dense
            role="menuitemcheckbox"
            aria-checked={names.has(name)}
            onClick={() => toggle(name)}
          >
            <CheckMark isChecked={names.has(name)} />
            <ListItemText>{title}</ListItemText>
          </MenuItem>
        ))}
        <Divider />
        <MenuItem dense onClick={reset}>
          {list.defaultColumns}
        </MenuItem>
      </Menu>
    </>
  )
}

/** Not an input: the entry of the menu says whether it is checked. */
function CheckMark({ isChecked }: { readonly isChecked: boolean }) {
  return (
    <Box
      aria-hidden="true"
      sx={{
        display: 'flex',
        width: 18,
        height: 18,
        mr: 1.5,
        border: 1,
        borderColor: isChecked ? 'primary.main' : 'text.secondary',
        borderRadius: 0.5,
        bgcolor: isChecked ? 'primary.main' : 'transparent',
        color: 'primary.contrastText',
      }}
    >
      {isChecked && <CheckIcon sx={{ fontSize: 16 }} />}
    </Box>
  )
}
