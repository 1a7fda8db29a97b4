import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import { isRouteErrorResponse, useRouteError } from 'react-router'
import { useTexts } from '../texts/texts.js'
import { Page } from './page.js'

/** A page that failed. After an upgrade of the service, the files of an open page may be gone: loading it again helps. */
export function RouteError() {
  const { common, menu } = useTexts()
  const error = useRouteError()
  return (
    <Box component="main" sx={{ p: 3, maxWidth: 640, mx: 'auto' }}>
      <Alert
        severity="error"
        action={
          <>
            <Button color="inherit" onClick={() => location.reload()}>
              {common.retry}
            </Button>
            <Button color="inherit" href="#/">
              {menu.home}
            </Button>
          </>
        }
      >
        {isRouteErrorResponse(error)
          ? common.notFound
          : `${common.failed}: ${error instanceof Error ? error.message : String(error)}`}
      </Alert>
    </Box>
  )
}

export function NotFoundPage() {
  const { common } = useTexts()
  return <Page title={common.notFound} />
}
