// Chooses the theme: light, dark, or as the system has it.
import CssBaseline from '@mui/material/CssBaseline'
import { ThemeProvider } from '@mui/material/styles'
import { useMemo, useSyncExternalStore, type ReactNode } from 'react'
import { Observable, useObservable } from '../service/observable.js'
import { readStored, writeStored } from '../service/storage.js'
import { buildTheme } from './theme.js'

export type ThemeChoice = 'light' | 'dark' | 'system'

const STORED_THEME = 'theme'
const DARK = matchMedia('(prefers-color-scheme: dark)')

function readChoice(): ThemeChoice {
  const stored = readStored(STORED_THEME)
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

const choice = new Observable<ThemeChoice>(readChoice())

export function chooseTheme(theme: ThemeChoice): void {
  writeStored(STORED_THEME, theme)
  choice.set(theme)
}

export function useThemeChoice(): ThemeChoice {
  return useObservable(choice)
}

function subscribeToSystem(listener: () => void): () => void {
  DARK.addEventListener('change', listener)
  return () => DARK.removeEventListener('change', listener)
}

export function AppTheme({ children }: { readonly children: ReactNode }) {
  const chosen = useThemeChoice()
  const isSystemDark = useSyncExternalStore(subscribeToSystem, () => DARK.matches)
  const mode = chosen === 'system' ? (isSystemDark ? 'dark' : 'light') : chosen
  const theme = useMemo(() => buildTheme(mode), [mode])
  return (
    <ThemeProvider theme={theme}>
      <CssBaseline />
      {children}
    </ThemeProvider>
  )
}
