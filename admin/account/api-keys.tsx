// The API keys of the person.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Typography from '@mui/material/Typography'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { explainFailure } from '../layout/message-list.js'
import { Loading } from '../layout/loading.js'
import { RelativeTime } from '../texts/relative-time.js'
import { ConfirmDialog } from '../layout/confirm-dialog.js'
import { AddIcon } from '../layout/icons.js'
import { showFailure, showMessage } from '../layout/message-list.js'
import { useTexts } from '../texts/texts.js'
import { AccountCard } from './account-card.js'
import { KeyForm } from './key-form.js'
import { deleteKey, KEYS_KEY, useKeys, type KeyInfo } from './requests.js'
import { ITEM } from './session-list.js'
import { ShownOnce } from './shown-once.js'

export function ApiKeys({ roles }: { readonly roles: readonly string[] }) {
  const { account } = useTexts()
  const queryClient = useQueryClient()
  const { data, error } = useKeys()
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | undefined>(undefined)
  const refresh = () => queryClient.invalidateQueries({ queryKey: KEYS_KEY })
  const onCreated = (key: string) => {
    setCreating(false)
    setSecret(key)
    void refresh()
  }
  return (
    <AccountCard title={account.keys} text={account.keysText}>
      {secret !== undefined && (
        <ShownOnce
          label={account.keyValue}
          value={secret}
          warning={account.keyOnce}
          onDone={() => setSecret(undefined)}
        />
      )}
      {error && <Alert severity="error">{explainFailure(error)}</Alert>}
      {!data && !error && <Loading />}
      {data?.length === 0 && <Typography color="text.secondary">{account.noKeys}</Typography>}
      {data && data.length > 0 && <KeyList keys={data} onDeleted={() => void refresh()} />}
      {isCreating ? (
        <KeyForm roles={roles} onCreated={onCreated} onCancel={() => setCreating(false)} />
      ) : (
        <Button startIcon={<AddIcon />} variant="outlined" onClick={() => setCreating(true)} sx={{ mt: 1 }}>
          {account.createKey}
        </Button>
      )}
    </AccountCard>
  )
}

interface KeyListProps {
  readonly keys: readonly KeyInfo[]
  readonly onDeleted: () => void
}

function KeyList({ keys, onDeleted }: KeyListProps) {
  const { account } = useTexts()
  const [asked, setAsked] = useState<KeyInfo | undefined>(undefined)
  const remove = async ({ id }: KeyInfo) => {
    setAsked(undefined)
    try {
      await deleteKey(id)
      showMessage({ text: account.keyDeleted, severity: 'success' })
    } catch (failure) {
      showFailure(failure)
    }
    onDeleted()
  }
  return (
    <>
      <Box component="ul" sx={{ m: 0, p: 0 }}>
        {keys.map((key) => (
          <KeyItem key={key.id} info={key} onDelete={() => setAsked(key)} />
        ))}
      </Box>
      {asked && (
        <ConfirmDialog
          isOpen
          title={account.deleteKeyTitle(asked.name)}
          text={account.deleteKeyText}
          confirmLabel={account.deleteKey}
          onConfirm={() => void remove(asked)}
          onCancel={() => setAsked(undefined)}
        />
      )}
    </>
  )
}

function KeyItem({ info, onDelete }: { readonly info: KeyInfo; readonly onDelete: () => void }) {
  const { account } = useTexts()
  const { name, prefix, expiresOn, lastUsedOn, roles } = info
  const isExpired = Date.parse(expiresOn) < Date.now()
  return (
    <Box component="li" sx={ITEM}>
      <Box sx={{ flexGrow: 1, minWidth: 0 }}>
        <Typography sx={{ overflowWrap: 'anywhere' }}>
          {name}{' '}
          <Box component="code" sx={{ color: 'text.secondary', fontSize: '.9em' }}>
            {prefix}…
          </Box>
        </Typography>
        <Typography variant="body2" color="text.secondary" sx={{ overflowWrap: 'anywhere' }}>
          {roles.join(', ') || account.noRoles} ·{' '}
          <Box component="span" sx={{ color: isExpired ? 'error.main' : undefined }}>
            {isExpired ? account.expired : account.expires} <RelativeTime on={expiresOn} />
          </Box>{' '}
          · {lastUsedOn === null ? account.neverUsed : account.lastUsed}{' '}
          {lastUsedOn !== null && <RelativeTime on={lastUsedOn} />}
        </Typography>
      </Box>
      <Button size="small" color="error" onClick={onDelete} aria-label={account.deleteKeyLabel(name)}>
        {account.deleteKey}
      </Button>
    </Box>
  )
}
