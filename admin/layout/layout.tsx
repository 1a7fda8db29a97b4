// The frame of the application: a bar at the top, the menu at the side, and the page.
import AppBar from '@mui/material/AppBar'
import Box from '@mui/material/Box'
import Drawer from '@mui/material/Drawer'
import IconButton from '@mui/material/IconButton'
import Link from '@mui/material/Link'
import LinearProgress from '@mui/material/LinearProgress'
import Toolbar from '@mui/material/Toolbar'
import useMediaQuery from '@mui/material/useMediaQuery'
import { Suspense, useEffect, useState } from 'react'
import { Link as RouterLink, Outlet, useLocation } from 'react-router'
import { useTexts } from '../texts/texts.js'
import { MenuIcon } from './icons.js'
import { ModelMenu } from './model-menu.js'
import { UserMenu } from './user-menu.js'
import { Wordmark } from './wordmark.js'

const MENU_WIDTH = 256
const CONTENT = 'content'

export function Layout() {
  const isWide = useMediaQuery('(min-width: 900px)')
  const [isOpen, setOpen] = useState(false)
  const { pathname } = useLocation()
  useEffect(() => setOpen(false), [pathname])
  return (
    <Box sx={{ display: 'flex', minHeight: '100vh' }}>
      <SkipLink />
      <TopBar isWide={isWide} onOpenMenu={() => setOpen(true)} />
      <Drawer
        variant={isWide ? 'permanent' : 'temporary'}
        open={isWide || isOpen}
        onClose={() => setOpen(false)}
        sx={{
          width: isWide ? MENU_WIDTH : 0,
          flexShrink: 0,
          '& .MuiDrawer-paper': { width: MENU_WIDTH, bgcolor: 'background.default' },
        }}
      >
        <Toolbar variant="dense" />
        <ModelMenu />
      </Drawer>
      <Box
        component="main"
        id={CONTENT}
        tabIndex={-1}
        sx={{ flexGrow: 1, minWidth: 0, outline: 'none', pb: 10 }}
      >
        <Toolbar variant="dense" />
        <Suspense fallback={<LinearProgress />}>
          <Outlet />
        </Suspense>
      </Box>
    </Box>
  )
}

function TopBar({ isWide, onOpenMenu }: { readonly isWide: boolean; readonly onOpenMenu: () => void }) {
  const { menu } = useTexts()
  return (
    <AppBar
      position="fixed"
      color="inherit"
      elevation={0}
      sx={{
        zIndex: (theme) => theme.zIndex.drawer + 1,
        borderBottom: 1,
        borderColor: 'divider',
        bgcolor: 'background.paper',
      }}
    >
      <Toolbar variant="dense" sx={{ gap: 1 }}>
        {!isWide && (
          <IconButton edge="start" onClick={onOpenMenu} aria-label={menu.open}>
            <MenuIcon />
          </IconButton>
        )}
        <Link
          component={RouterLink}
          to="/"
          color="inherit"
          underline="none"
          aria-label={`Verso: ${menu.home}`}
        >
          <Wordmark />
        </Link>
        <Box sx={{ flexGrow: 1 }} />
        <UserMenu />
      </Toolbar>
    </AppBar>
  )
}

/** The first stop of the Tab key. A link would change the address, which holds the page. */
function SkipLink() {
  const { common } = useTexts()
  return (
    <Box
      component="button"
      onClick={() => document.getElementById(CONTENT)?.focus()}
      sx={{ position: 'fixed', top: -100, left: 8, zIndex: 'tooltip', p: 1, '&:focus': { top: 8 } }}
    >
      {common.skipToContent}
    </Box>
  )
}
