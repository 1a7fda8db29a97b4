// Colours and shapes of the application, light and dark.
import { createTheme, type Theme } from '@mui/material/styles'

export type ThemeMode = 'light' | 'dark'

const COLOURS = {
  light: {
    accent: '#3b5bdb',
    page: '#f6f7f9',
    card: '#ffffff',
    line: '#dfe3e8',
    text: '#1a1d21',
    soft: '#5a6370',
  },
  dark: {
    accent: '#91a7ff',
    page: '#111418',
    card: '#1b1f24',
    line: '#333a43',
    text: '#e7eaee',
    soft: '#a7b0bb',
  },
} as const

export function buildTheme(mode: ThemeMode): Theme {
  const colours = COLOURS[mode]
  const focusRing = { outline: `2px solid ${colours.accent}`, outlineOffset: 2 }
  return createTheme({
    palette: {
      mode,
      primary: { main: colours.accent, contrastText: mode === 'light' ? '#ffffff' : '#10131a' },
      background: { default: colours.page, paper: colours.card },
      divider: colours.line,
      text: { primary: colours.text, secondary: colours.soft },
      error: { main: mode === 'light' ? '#b42318' : '#ff9b91' },
      warning: { main: mode === 'light' ? '#8a5300' : '#f0b95a' },
      success: { main: mode === 'light' ? '#1c6b3f' : '#7fd6a4' },
      info: { main: mode === 'light' ? '#1d5fa8' : '#8cc4ff' },
    },
    shape: { borderRadius: 10 },
    typography: {
      fontFamily: 'Inter, system-ui, sans-serif',
      fontSize: 14,
      h1: { fontSize: '1.35rem', fontWeight: 650 },
      h2: { fontSize: '1.05rem', fontWeight: 650 },
      h3: { fontSize: '.95rem', fontWeight: 650 },
      button: { textTransform: 'none', fontWeight: 600 },
    },
    components: {
      MuiButtonBase: {
        defaultProps: { disableRipple: true },
        styleOverrides: { root: { '&:focus-visible': focusRing } },
      },
      MuiLink: { styleOverrides: { root: { '&:focus-visible': focusRing } } },
      MuiPaper: { styleOverrides: { root: { backgroundImage: 'none' } } },
      MuiCard: { defaultProps: { variant: 'outlined' } },
      MuiTextField: { defaultProps: { size: 'small', fullWidth: true } },
      MuiFormHelperText: {
        styleOverrides: { root: { marginLeft: 2, minHeight: '1.25em', lineHeight: 1.25 } },
      },
      MuiTableCell: { styleOverrides: { head: { fontWeight: 600 } } },
      MuiDialogTitle: { styleOverrides: { root: { fontSize: '1.15rem', fontWeight: 650 } } },
      MuiTooltip: { defaultProps: { arrow: true } },
    },
  })
}
