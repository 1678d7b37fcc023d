/** `npm run sbom`: writes what this is made of, as a page and as a bill of materials. With `--check` it only compares. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Packages } from './dependencies/lockfile.ts'
import { pageOf } from './dependencies/page.ts'
import { problemsOf } from './dependencies/problems.ts'
import { reasons } from './dependencies/reasons.ts'
import { sbomOf } from './dependencies/sbom.ts'
import { report, root } from './source.ts'

const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The packages of this repository's lockfile. */
export function lockedPackages(): Packages {
  const { packages }: { packages: Packages } = JSON.parse(read('package-lock.json'))
  return packages
}

/** The files that the lockfile makes: path → content. */
export const filesOf = (packages: Packages): Record<string, string> => ({
  'docs/dependencies.md': pageOf(packages, reasons),
  'docs/sbom.cdx.json': sbomOf(packages),
})

function main(): void {
  const packages = lockedPackages()
  const files = Object.entries(filesOf(packages))
  if (!process.argv.includes('--check')) for (const [path, text] of files) writeFileSync(join(root, path), text)
  const stale = files.filter(([path, text]) => read(path) !== text)
  report([
    ...problemsOf(packages, reasons),
    ...stale.map(([path]) => `${path} is not what the lockfile says. Run: npm run sbom`),
  ])
}

if (import.meta.main) main()
