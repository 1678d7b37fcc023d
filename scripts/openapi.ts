import { readFileSync, writeFileSync } from 'node:fs'
// This import comes first, because it extends zod before schemas are created.
import { openApiDocument } from '@platform/contract/openapi'
import { exampleCommandsOf } from '@platform/cli/commands/add-command'
import { createProgram } from '@platform/cli/program'

/** The file that `npm run openapi` writes. With `--check`, the command only compares it. */
export const openApiFile = new URL('../packages/contract/openapi.json', import.meta.url)

export const openApiText = (): string =>
  `${JSON.stringify(openApiDocument(exampleCommandsOf(createProgram())), null, 2)}\n`

function main(): void {
  if (!process.argv.includes('--check')) return writeFileSync(openApiFile, openApiText())
  if (readFileSync(openApiFile, 'utf8') === openApiText()) return
  console.error('packages/contract/openapi.json is out of date. Run: npm run openapi')
  process.exitCode = 1
}

if (import.meta.main) main()
