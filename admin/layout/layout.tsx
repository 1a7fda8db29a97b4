// The frame of the application: a bar at the top, the menu at the side, and the page.
import Alert from '@mui/material/Alert'
import AppBar from '@mui/material/AppBar'
import Box from '@mui/material/Box'
import Drawer from '@mui/material/Drawer'
import IconButton from '@mui/material/IconButton'
import Link from '@mui/material/Link'
import Toolbar from '@mui/material/Toolbar'
import useMediaQuery from '@mui/material/useMediaQuery'
import { Suspense, useEffect, useState } from 'react'
import { Link as RouterLink, Outlet, useLocation } from 'react-router'
import { Loading } from './loading.js'
import { useObservable } from '../service/observable.js'
import { isOffline } from '../service/session.js'
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
      <OfflineNotice />
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
        sx={{ flexGrow: 1, minWidth: 0, outline: 'none', pb: 18 }}
      >
        <Toolbar variant="dense" />
        <Suspense fallback={<Loading />}>
          <Outlet />
        </Suspense>
      </Box>
    </Box>
  )
}

/** Above the page, so that nothing moves. */
function OfflineNotice() {
  const { common } = useTexts()
  const isUnreachable = useObservable(isOffline)
  return (
    <Box
      role="status"
      sx={{
        position: 'fixed',
        top: 52,
        left: 0,
        right: 0,
        zIndex: 'appBar',
        display: 'flex',
        justifyContent: 'center',
        pointerEvents: 'none',
      }}
    >
      {isUnreachable && (
        <Alert role="none" severity="warning" sx={{ boxShadow: 6, pointerEvents: 'auto' }}>
          {common.offline}
        </Alert>
      )}
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
