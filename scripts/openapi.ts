import { readFileSync, writeFileSync } from 'node:fs'
import { openApiDocument } from '@platform/contract/openapi'

/** The OpenAPI document that is committed. `npm run openapi` writes it; with `--check` it only compares. */
export const openApiFile = new URL('../packages/contract/openapi.json', import.meta.url)

/** The document as the file should hold it. */
export const openApiText = (): string => `${JSON.stringify(openApiDocument(), null, 2)}\n`

function main(): void {
  if (!process.argv.includes('--check')) return writeFileSync(openApiFile, openApiText())
  if (readFileSync(openApiFile, 'utf8') === openApiText()) return
  console.error('packages/contract/openapi.json is not what the contract says. Run: npm run openapi')
  process.exitCode = 1
}

if (import.meta.main) main()
