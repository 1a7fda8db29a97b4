import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const find = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** The service writes the base path into index.html, so all addresses in it are relative. */
export default defineConfig({
  root: find('.'),
  base: './',
  resolve: {
    alias: {
      'verso-records/client': find('../src/client/index.ts'),
      'verso-records/react-admin': find('../src/react-admin/data-provider.ts'),
    },
  },
  build: {
    outDir: find('../dist/admin'),
    emptyOutDir: true,
    // Inlined files would be `data:` URLs, which browsers do not cache apart.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      onLog(level, log, report) {
        // The directive 'use client' of MUI has no meaning in a browser.
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') report(level, log)
      },
    },
  },
  server: {
    proxy: {
      '/ws': 'http://localhost:8080',
      '/callback': 'http://localhost:8080',
      '/logout': 'http://localhost:8080',
    },
  },
})
