import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { iconFiles } from './icons.ts'

/** Where `npm run dev -w @platform/portal` finds the API. */
const api = process.env['PLAT_URL'] ?? 'http://127.0.0.1:8080'
const forwarded = ['/api', '/health', '/docs', '/relay', '/schemas']

export default defineConfig({
  plugins: [react(), iconFiles()],
  build: {
    target: 'es2024',
    // Everything is a file of its own: a policy without `data:` for scripts, styles and fonts stays possible.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // One file of icons, instead of one for each that two pages share.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'icons', test: /lucide-react/ }] } } },
  },
  server: { host: '127.0.0.1', proxy: Object.fromEntries(forwarded.map((path) => [path, { target: api }])) },
})
