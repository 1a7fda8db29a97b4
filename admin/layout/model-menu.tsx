// The models, by package. Stays fast with many hundreds of models: it renders a limited number of them, and finds the others by name.
import Box from '@mui/material/Box'
import Link from '@mui/material/Link'
import TextField from '@mui/material/TextField'
import Typography from '@mui/material/Typography'
import { memo, useDeferredValue, useMemo, useState } from 'react'
import { Link as RouterLink, useLocation } from 'react-router'
import { explainFailure } from './message-list.js'
import { useModelNames } from '../service/models.js'
import { buildListPath } from '../service/paths.js'
import { useTexts } from '../texts/texts.js'
import { findEntries, groupEntries, listEntries, type MenuEntry } from './model-groups.js'

const MAX_ENTRIES = 100
const NO_NAMES: readonly string[] = []
/** Stays in sight, below the bar of the application, which has this height. */
const SEARCH = {
  position: 'sticky',
  top: 48,
  zIndex: 1,
  bgcolor: 'background.default',
  pt: 1.5,
  pb: 1,
} as const

export function ModelMenu() {
  const { menu } = useTexts()
  const [text, setText] = useState('')
  // The letters appear at once; the entries follow when there is time.
  const wanted = useDeferredValue(text)
  return (
    <Box component="nav" aria-label={menu.models} sx={{ px: 1.5, pb: 1.5 }}>
      <Box sx={SEARCH}>
        <TextField
          label={menu.filter}
          value={text}
          onChange={({ target }) => setText(target.value)}
          slotProps={{ htmlInput: { autoComplete: 'off' } }}
        />
      </Box>
      <Entries text={wanted} />
    </Box>
  )
}

const Entries = memo(function Entries({ text }: { readonly text: string }) {
  const { menu, common } = useTexts()
  const { data: names = NO_NAMES, error, refetch } = useModelNames()
  const { pathname } = useLocation()
  const entries = useMemo(() => listEntries(names), [names])
  const found = useMemo(() => findEntries(entries, text), [entries, text])
  const groups = useMemo(() => groupEntries(found.slice(0, MAX_ENTRIES), menu.administration), [found, menu])
  const hidden = found.length - MAX_ENTRIES
  return (
    <>
      {groups.map(({ title, packageName, entries: members }) => (
        <Box key={packageName} component="section" sx={{ mb: 1 }}>
          <Typography
            component="h2"
            variant="caption"
            title={packageName}
            sx={{
              display: 'block',
              px: 1,
              py: 0.5,
              color: 'text.secondary',
              fontWeight: 600,
              overflowWrap: 'anywhere',
            }}
          >
            {title || menu.models}
          </Typography>
          <Box component="ul" sx={{ m: 0, p: 0, listStyle: 'none' }}>
            {members.map((entry) => (
              <EntryLink
                key={entry.model}
                entry={entry}
                isCurrent={isBelow(pathname, buildListPath(entry.model))}
              />
            ))}
          </Box>
        </Box>
      ))}
      {found.length === 0 && names.length > 0 && <Note text={menu.noMatch} />}
      {hidden > 0 && <Note text={menu.moreModels(hidden)} />}
      {error && (
        <>
          <Note text={explainFailure(error)} />
          <Link component="button" onClick={() => void refetch()} sx={{ px: 1 }}>
            {common.retry}
          </Link>
        </>
      )}
    </>
  )
})

function isBelow(pathname: string, path: string): boolean {
  return pathname === path || pathname.startsWith(`${path}/`)
}

function Note({ text }: { readonly text: string }) {
  return (
    <Typography variant="body2" color="text.secondary" role="status" sx={{ px: 1, py: 0.5 }}>
      {text}
    </Typography>
  )
}

const LINK = {
  display: 'block',
  px: 1,
  py: 0.75,
  borderRadius: 1.5,
  overflowWrap: 'anywhere',
  '&:hover': { bgcolor: 'action.hover' },
} as const
const CURRENT_LINK = { ...LINK, bgcolor: 'action.selected', fontWeight: 600 } as const

const EntryLink = memo(function EntryLink({
  entry,
  isCurrent,
}: {
  readonly entry: MenuEntry
  readonly isCurrent: boolean
}) {
  return (
    <li>
      <Link
        component={RouterLink}
        to={buildListPath(entry.model)}
        color="inherit"
        underline="none"
        aria-current={isCurrent ? 'page' : undefined}
        sx={isCurrent ? CURRENT_LINK : LINK}
      >
        {entry.title}
      </Link>
    </li>
  )
})
