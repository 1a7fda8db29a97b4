// A secret that is shown only once, with a button that copies it.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import TextField from '@mui/material/TextField'
import { useRef, useState } from 'react'
import { CheckIcon, CopyIcon } from '../layout/icons.js'
import { useTexts } from '../texts/texts.js'

interface ShownOnceProps {
  readonly label: string
  readonly value: string
  readonly warning: string
  readonly onDone: () => void
}

export function ShownOnce({ label, value, warning, onDone }: ShownOnceProps) {
  const { account } = useTexts()
  const input = useRef<HTMLInputElement>(null)
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    setCopied(await copyText(value, input.current))
  }
  return (
    <Alert
      severity="warning"
      role="alert"
      sx={{ my: 2, '& .MuiAlert-message': { flexGrow: 1, minWidth: 0 } }}
    >
      {warning}
      <Box sx={{ display: 'flex', flexWrap: 'wrap', gap: 1, mt: 1.5 }}>
        <TextField
          label={label}
          value={value}
          inputRef={input}
          onFocus={(event) => event.target.select()}
          sx={{ flex: '1 1 260px' }}
          slotProps={{ htmlInput: { readOnly: true, spellCheck: false, autoComplete: 'off' } }}
        />
        <Button
          variant="contained"
          startIcon={isCopied ? <CheckIcon /> : <CopyIcon />}
          onClick={() => void copy()}
          sx={{ height: 40 }}
        >
          {isCopied ? account.copied : account.copy}
        </Button>
        <Button onClick={onDone} sx={{ height: 40 }}>
          {account.done}
        </Button>
      </Box>
    </Alert>
  )
}

/** Browsers have a clipboard only over https and on localhost. Elsewhere the text is selected, and a person copies it with the keyboard. */
async function copyText(text: string, input: HTMLInputElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    input?.focus()
    input?.select()
    return false
  }
}
