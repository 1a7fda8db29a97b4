import IconButton from '@mui/material/IconButton'
import InputAdornment from '@mui/material/InputAdornment'
import TextField from '@mui/material/TextField'
import { useEffect, useEffectEvent, useState } from 'react'
import { CloseIcon, SearchIcon } from '../layout/icons.js'
import { useTexts } from '../texts/texts.js'
import { limitSearchText } from '../fields/search-text.js'
import { SEARCH_DELAY_MS } from '../fields/use-debounced.js'

interface SearchBoxProps {
  readonly label: string
  /** The words of the address. */
  readonly words: string
  readonly onSearch: (words: string) => void
}

export function SearchBox({ label, words, onSearch }: SearchBoxProps) {
  const { list } = useTexts()
  const { text, setText, search } = useSearchText(words, onSearch)
  return (
    <TextField
      label={label}
      type="text"
      value={text}
      onChange={({ target }) => setText(target.value)}
      onKeyDown={({ key }) => {
        if (key === 'Enter') search(text)
      }}
      sx={{ width: { xs: '100%', sm: 320 } }}
      slotProps={{
        htmlInput: { autoComplete: 'off', enterKeyHint: 'search' },
        input: {
          startAdornment: (
            <InputAdornment position="start">
              <SearchIcon fontSize="small" />
            </InputAdornment>
          ),
          endAdornment: text !== '' && (
            <InputAdornment position="end">
              <IconButton
                size="small"
                edge="end"
                aria-label={list.clearSearch}
                onClick={() => {
                  setText('')
                  search('')
                }}
              >
                <CloseIcon fontSize="small" />
              </IconButton>
            </InputAdornment>
          ),
        },
      }}
    />
  )
}

/** The text follows the address when something else changes it, such as the way back. The answer to what was typed before must not undo newer letters. */
function useSearchText(words: string, onSearch: (words: string) => void) {
  const [text, setText] = useState(words)
  const [seen, setSeen] = useState(words)
  const [sent, setSent] = useState(words)
  if (words !== seen) {
    setSeen(words)
    if (words !== sent) {
      setText(words)
      setSent(words)
    }
  }
  const search = (typed: string) => {
    const wanted = limitSearchText(typed)
    if (wanted === sent) return
    setSent(wanted)
    onSearch(wanted)
  }
  const searchLater = useEffectEvent(search)
  useEffect(() => {
    const timer = setTimeout(() => searchLater(text), SEARCH_DELAY_MS)
    return () => clearTimeout(timer)
  }, [text])
  return { text, setText, search }
}
