// The entry of the application.
import { CacheProvider } from '@emotion/react'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { loadLocale, TextsProvider } from './texts/texts.js'
import { createStyleCache } from './theme/adopted-sheet.js'
import { AppTheme } from './theme/app-theme.js'
import { Entrance } from './entrance.js'

const root = document.querySelector('#root')
if (!root) throw new Error('index.html has no element #root')
await loadLocale()
createRoot(root).render(
  <StrictMode>
    <CacheProvider value={createStyleCache()}>
      <TextsProvider>
        <AppTheme>
          <Entrance />
        </AppTheme>
      </TextsProvider>
    </CacheProvider>
  </StrictMode>,
)
