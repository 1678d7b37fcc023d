import { readFileSync, writeFileSync } from 'node:fs'
import { openApiDocument } from '@platform/contract/openapi'

/** The file that `npm run openapi` writes. With `--check`, the command only compares it. */
export const openApiFile = new URL('../packages/contract/openapi.json', import.meta.url)

export const openApiText = (): string => `${JSON.stringify(openApiDocument(), null, 2)}\n`

function main(): void {
  if (!process.argv.includes('--check')) return writeFileSync(openApiFile, openApiText())
  if (readFileSync(openApiFile, 'utf8') === openApiText()) return
  console.error('packages/contract/openapi.json is out of date. Run: npm run openapi')
  process.exitCode = 1
}

if (import.meta.main) main()
