import { readFileSync, writeFileSync } from 'node:fs'
import { openApiDocument } from '@platform/contract/openapi'

/** `npm run openapi` writes this file; `--check` only compares. */
export const openApiFile = new URL('../packages/contract/openapi.json', import.meta.url)

export const openApiText = (): string => `${JSON.stringify(openApiDocument(), null, 2)}\n`

function main(): void {
  if (!process.argv.includes('--check')) return writeFileSync(openApiFile, openApiText())
  if (readFileSync(openApiFile, 'utf8') === openApiText()) return
  console.error('packages/contract/openapi.json is out of date. Run: npm run openapi')
  process.exitCode = 1
}

if (import.meta.main) main()
