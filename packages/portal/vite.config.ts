import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { iconFiles } from './icons.ts'

/** The API for `npm run dev -w @platform/portal`. */
const api = process.env['PLAT_URL'] ?? 'http://127.0.0.1:8080'
const forwarded = ['/api', '/health', '/docs', '/relay', '/schemas']

/** One chunk for icons instead of one per pair of pages. */
const icons = { name: 'icons', test: /lucide-react/, priority: 1 }

/**
 * One chunk for code that many pages share: a page needs about six requests instead of thirty, and each costs a
 * function call.
 */
const common = { name: 'common', minShareCount: 4 }

export default defineConfig({
  plugins: [react(), iconFiles()],
  build: {
    target: 'es2024',
    // No inlining, so that the content security policy needs no `data:` URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: { groups: [icons, common] } } },
  },
  server: { host: '127.0.0.1', proxy: Object.fromEntries(forwarded.map((path) => [path, { target: api }])) },
})
