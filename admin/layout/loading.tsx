import LinearProgress from '@mui/material/LinearProgress'
import { useTexts } from '../texts/texts.js'

export function Loading() {
  const { common } = useTexts()
  return <LinearProgress aria-label={common.loading} />
}
