// The application of a person who is signed in: one generic route for all models, pages loaded when they are opened.
import { CoreAdminContext } from 'ra-core'
import { lazy } from 'react'
import { createHashRouter, RouterProvider } from 'react-router'
import { Layout } from './layout/layout.js'
import { Messages } from './layout/messages.js'
import { NotFoundPage, RouteError } from './layout/route-error.js'
import { dataProvider, followChangesInCache, queryClient } from './service/data.js'
import { startLiveChanges } from './service/live.js'
import { SessionDialog } from './sign-in/session-dialog.js'

const HomePage = lazy(async () => ({ default: (await import('./home/home-page.js')).HomePage }))
const ListPage = lazy(async () => ({ default: (await import('./list/list-page.js')).ListPage }))
const RecordPage = lazy(async () => ({ default: (await import('./form/record-page.js')).RecordPage }))
const HistoryPage = lazy(async () => ({ default: (await import('./history/history-page.js')).HistoryPage }))
const DeletedPage = lazy(async () => ({ default: (await import('./history/deleted-page.js')).DeletedPage }))
const AccountPage = lazy(async () => ({ default: (await import('./account/account-page.js')).AccountPage }))

/** The paths are built by service/paths.ts. */
const router = createHashRouter([
  {
    path: '/',
    element: (
      <CoreAdminContext dataProvider={dataProvider} queryClient={queryClient}>
        <Layout />
        <Messages />
        <SessionDialog />
      </CoreAdminContext>
    ),
    errorElement: <RouteError />,
    children: [
      { index: true, element: <HomePage /> },
      { path: 'account', element: <AccountPage /> },
      { path: 'records/:model', element: <ListPage /> },
      { path: 'records/:model/new', element: <RecordPage /> },
      { path: 'records/:model/deleted', element: <DeletedPage /> },
      { path: 'records/:model/:id', element: <RecordPage /> },
      { path: 'records/:model/:id/history', element: <HistoryPage /> },
      { path: '*', element: <NotFoundPage /> },
    ],
  },
])

startLiveChanges()
followChangesInCache()

export function App() {
  return <RouterProvider router={router} />
}
