import { readFileSync, writeFileSync } from 'node:fs'
import imports from 'lucide-react/dynamicIconImports'

/** Generates the list of icons for manifests from the portal's icon library. `--check` only compares. */
const file = new URL('../packages/core/src/modules/icons.ts', import.meta.url)

const lineLength = 116

function iconsText(): string {
  const lines = ['']
  for (const name of Object.keys(imports).toSorted()) {
    const last = lines.at(-1) ?? ''
    if (last.length + name.length < lineLength) lines[lines.length - 1] = `${last} ${name}`
    else lines.push(` ${name}`)
  }
  return `/** The names of Lucide's icons, aliases included. Made by scripts/icons.ts: do not edit. */
// oxlint-disable max-lines
export const iconNames: ReadonlySet<string> = new Set(
  \`
${lines.map((line) => `   ${line}`).join('\n')}
  \`
    .trim()
    .split(/\\s+/),
)
`
}

function main(): void {
  if (!process.argv.includes('--check')) return writeFileSync(file, iconsText())
  if (readFileSync(file, 'utf8') === iconsText()) return
  console.error('packages/core/src/modules/icons.ts is out of date. Run: node scripts/icons.ts')
  process.exitCode = 1
}

if (import.meta.main) main()
