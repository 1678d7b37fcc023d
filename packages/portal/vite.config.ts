import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { iconFiles } from './icons.ts'
import { modulePageStyle } from './module-page-style.ts'

// The platform that `npm run dev -w @platform/portal` uses.
const api = process.env['PLAT_URL'] ?? 'http://127.0.0.1:8080'
const forwarded = ['/api', '/health', '/docs', '/relay', '/schemas']

// Without this group, each pair of pages that shares icons would have its own chunk.
const icons = { name: 'icons', test: /lucide-react/, priority: 1 }

// Code that at least four pages share is in one chunk, so that a page needs fewer requests.
const common = { name: 'common', minShareCount: 4 }

export default defineConfig({
  plugins: [react(), iconFiles(), modulePageStyle()],
  build: {
    target: 'es2024',
    // Inlined assets would require `data:` URLs in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: { groups: [icons, common] } } },
  },
  server: { host: '127.0.0.1', proxy: Object.fromEntries(forwarded.map((path) => [path, { target: api }])) },
})
