// The own account: profile, password, sessions and API keys.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Typography from '@mui/material/Typography'
import type { ReactNode } from 'react'
import { explainFailure } from '../layout/message-list.js'
import { Loading } from '../layout/loading.js'
import { RelativeTime } from '../texts/relative-time.js'
import { Page } from '../layout/page.js'
import { useTexts } from '../texts/texts.js'
import { AccountCard } from './account-card.js'
import { ApiKeys } from './api-keys.js'
import { OwnSessions } from './own-sessions.js'
import { PasswordForm } from './password-form.js'
import { useMe, type Me } from './requests.js'

export function AccountPage() {
  const { account } = useTexts()
  const { data: me, error } = useMe()
  return (
    <Page title={account.title} isNarrow>
      {error && <Alert severity="error">{explainFailure(error)}</Alert>}
      {!me && !error && <Loading />}
      {me && (
        <>
          <Profile me={me} />
          <PasswordForm />
          <OwnSessions />
          <ApiKeys roles={me.roles} />
        </>
      )}
    </Page>
  )
}

function Profile({ me }: { readonly me: Me }) {
  const { account } = useTexts()
  const { name, username, roles, admin, lastLoginOn } = me
  return (
    <AccountCard title={account.profile}>
      <Box
        component="dl"
        sx={{
          m: 0,
          display: 'grid',
          gridTemplateColumns: { xs: '1fr', sm: '180px 1fr' },
          columnGap: 2,
          rowGap: { sm: 1 },
        }}
      >
        <Fact title={account.name}>{name ?? '—'}</Fact>
        <Fact title={account.username}>{username}</Fact>
        <Fact title={account.roles}>
          {roles.join(', ') || account.noRoles}
          {admin && (
            <Typography variant="body2" color="text.secondary">
              {account.administrator}
            </Typography>
          )}
        </Fact>
        <Fact title={account.lastLogin}>
          {lastLoginOn === null ? account.never : <RelativeTime on={lastLoginOn} />}
        </Fact>
      </Box>
    </AccountCard>
  )
}

function Fact({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <>
      <Typography component="dt" variant="body2" color="text.secondary">
        {title}
      </Typography>
      <Box component="dd" sx={{ m: 0, mb: { xs: 1, sm: 0 }, overflowWrap: 'anywhere' }}>
        {children}
      </Box>
    </>
  )
}
