// The card of a conflict: only the values that both sides changed, nothing preselected, and the result can be edited.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Dialog from '@mui/material/Dialog'
import DialogActions from '@mui/material/DialogActions'
import DialogContent from '@mui/material/DialogContent'
import DialogTitle from '@mui/material/DialogTitle'
import Typography from '@mui/material/Typography'
import useMediaQuery from '@mui/material/useMediaQuery'
import { useState } from 'react'
import { nameOtherAuthor } from '../editor/other-author.js'
import type { Conflict } from '../editor/editor-state.js'
import type { Clash } from '../editor/merge.js'
import type { RecordEditor } from '../editor/record-editor.js'
import { getAccount } from '../service/session.js'
import { useTexts } from '../texts/texts.js'
import { ClashChoice, type Choice } from './clash-choice.js'

interface ConflictCardProps {
  readonly editor: RecordEditor
  readonly conflict: Conflict
}

const TITLE = 'conflict-title'
const TEXT = 'conflict-text'

export function ConflictCard({ editor, conflict }: ConflictCardProps) {
  const { conflict: texts } = useTexts()
  const isNarrow = useMediaQuery('(max-width: 700px)')
  const [choices, setChoices] = useState<ReadonlyMap<Clash, Choice>>(new Map())
  const { clashes, changedBy, changedOn } = conflict
  const left = clashes.filter((clash) => !choices.has(clash)).length
  const isOwn = changedBy?.id === getAccount().id
  /** What the person has edited in the card goes into the form. */
  const postpone = () => {
    const edited = [...choices].filter(
      ([clash, { side, value }]) => side === 'ours' || value !== clash.theirs,
    )
    editor.postpone(new Map(edited.map(([clash, { value }]) => [clash, value])))
  }
  const save = () => {
    const values = new Map([...choices].map(([clash, { value }]) => [clash, value]))
    void editor.resolve(values)
  }
  return (
    <Dialog
      open
      // A click beside the card is no decision.
      onClose={(_, reason) => {
        if (reason === 'escapeKeyDown') postpone()
      }}
      fullScreen={isNarrow}
      fullWidth
      maxWidth="md"
      aria-labelledby={TITLE}
      aria-describedby={TEXT}
    >
      <DialogTitle id={TITLE}>{isOwn ? texts.titleOwn : texts.title}</DialogTitle>
      <DialogContent>
        <Typography id={TEXT} sx={{ mb: 2 }}>
          {isOwn ? texts.withYourself : texts.bothChanged(nameOtherAuthor(changedBy), clashes.length)}{' '}
          {texts.restMerged}
        </Typography>
        {clashes.map((clash, index) => (
          <ClashChoice
            key={index}
            clash={clash}
            author={nameOtherAuthor(changedBy)}
            changedOn={changedOn}
            choice={choices.get(clash)}
            onChoose={(choice) => setChoices(new Map(choices).set(clash, choice))}
          />
        ))}
        <Typography variant="body2" color="text.secondary">
          {texts.keepsHistory}
        </Typography>
      </DialogContent>
      <DialogActions sx={{ flexWrap: 'wrap', gap: 1, px: 3, pb: 2 }}>
        <Box role="status" sx={{ flexGrow: 1, fontWeight: 600 }}>
          {texts.left(left, clashes.length)}
        </Box>
        <Button onClick={postpone}>{texts.back}</Button>
        <Button variant="contained" disabled={left > 0} onClick={save}>
          {texts.save}
        </Button>
      </DialogActions>
    </Dialog>
  )
}
