import Box from '@mui/material/Box'
import logo from '../logo.svg'

export function Wordmark({ size = 26 }: { readonly size?: number }) {
  return (
    <Box
      sx={{
        display: 'flex',
        alignItems: 'center',
        gap: 1,
        fontWeight: 700,
        fontSize: size * 0.72,
        letterSpacing: '-.01em',
      }}
    >
      <img src={logo} width={size} height={size} alt="" />
      Verso
    </Box>
  )
}
