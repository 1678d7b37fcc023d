import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { iconFiles } from './icons.ts'

/** Where `npm run dev -w @platform/portal` finds the API. */
const api = process.env['PLAT_URL'] ?? 'http://127.0.0.1:8080'
const forwarded = ['/api', '/health', '/docs', '/relay', '/schemas']

/** One file of icons, instead of one for each that two pages share. */
const icons = { name: 'icons', test: /lucide-react/, priority: 1 }

/**
 * What many pages share, in one file instead of one for each combination of pages: a page is then half a dozen requests,
 * each of which costs a call of a function, and not thirty.
 */
const common = { name: 'common', minShareCount: 4 }

export default defineConfig({
  plugins: [react(), iconFiles()],
  build: {
    target: 'es2024',
    // Everything is a file of its own: a policy without `data:` for scripts, styles and fonts stays possible.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: { groups: [icons, common] } } },
  },
  server: { host: '127.0.0.1', proxy: Object.fromEntries(forwarded.map((path) => [path, { target: api }])) },
})
