import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesOf, lockedPackages } from '../../scripts/dependencies.ts'
import { directsOf, type Packages } from '../../scripts/dependencies/lockfile.ts'
import { problemsOf } from '../../scripts/dependencies/problems.ts'
import { reasons } from '../../scripts/dependencies/reasons.ts'
import { sbomOf } from '../../scripts/dependencies/sbom.ts'
import { root } from '../../scripts/source.ts'

const packages = lockedPackages()

test('the committed list and bill of materials are what the lockfile says', async () => {
  for (const [path, text] of Object.entries(filesOf(packages))) {
    expect(await readFile(join(root, path), 'utf8'), `${path}: run npm run sbom`).toBe(text)
  }
})

test('each dependency has a reason, one version and a licence that may be used', () => {
  expect(problemsOf(packages, reasons)).toEqual([])
})

test('what the workspaces ask for is what the lockfile knows of them', async () => {
  const { dependencies } = JSON.parse(await readFile(join(root, 'packages/core/package.json'), 'utf8'))
  const ofCore = directsOf(packages).filter(({ workspace }) => workspace === 'packages/core')
  expect(Object.fromEntries(ofCore.map(({ name, version }) => [name, version]))).toEqual(dependencies)
})

/** A lockfile of one workspace, with another package or two. */
const lockfile = (more: Packages, dependencies: Record<string, string>): Packages => ({
  '': { name: 'house', version: '1.0.0' },
  'packages/a': { name: 'a', version: '1.0.0', dependencies },
  'node_modules/a': { link: true, resolved: 'packages/a' },
  ...more,
})
const b = { version: '2.0.0', license: 'MIT' }
const known = { b: 'its reason' }

test.for([
  ['a range', { 'node_modules/b': b }, { b: '^2.0.0' }, known, 'packages/a asks for b ^2.0.0: pin it.'],
  ['no reason', { 'node_modules/b': b }, { b: '2.0.0' }, {}, 'b has no reason in reasons.ts.'],
  ['a reason for nothing', {}, {}, known, 'b has a reason, and is not here.'],
  [
    'a licence that is not on the list',
    { 'node_modules/b': { ...b, license: 'GPL-3.0-only' } },
    { b: '2.0.0' },
    known,
    'b@2.0.0 has the licence GPL-3.0-only.',
  ],
  [
    'half a licence that is not on the list',
    { 'node_modules/b': { ...b, license: '(MIT AND GPL-3.0-only)' } },
    { b: '2.0.0' },
    known,
    'b@2.0.0 has the licence (MIT AND GPL-3.0-only).',
  ],
  [
    'a licence for tools in what runs',
    { 'node_modules/b': { ...b, license: 'MPL-2.0' } },
    { b: '2.0.0' },
    known,
    'b@2.0.0 has the licence MPL-2.0.',
  ],
  [
    'no licence, somewhere below',
    { 'node_modules/b': b, 'node_modules/b/node_modules/c': { version: '3.0.0' } },
    { b: '2.0.0' },
    known,
    'c@3.0.0 has the licence none.',
  ],
] as const)('%s is a problem', ([, more, dependencies, why, problem]) => {
  expect(problemsOf(lockfile(more, dependencies), why)).toEqual([problem])
})

test.for([
  ['a choice of licences of which one will do', { ...b, license: '(MIT OR GPL-3.0-only)' }],
  ['a licence for tools in a tool', { ...b, license: 'MPL-2.0', dev: true }],
] as const)('%s is none', ([, locked]) => {
  expect(problemsOf(lockfile({ 'node_modules/b': locked }, { b: '2.0.0' }), known)).toEqual([])
})

interface Bill {
  components: { 'bom-ref': string; purl: string; hashes?: unknown; licenses?: unknown }[]
  dependencies: { ref: string; dependsOn: string[] }[]
}
const bill = (text: string): Bill => JSON.parse(text)
const contentOf = ({ components }: Bill) => new Map(components.map(({ purl, hashes }) => [purl, hashes]))

test('whoever asks for a package gets the one that Node would load', () => {
  const nested = { 'node_modules/b': b, 'packages/a/node_modules/b': { ...b, version: '3.0.0' } }
  const { dependencies } = bill(sbomOf(lockfile(nested, { b: '3.0.0' })))
  expect(dependencies.find(({ ref }) => ref === 'a@1.0.0')?.dependsOn).toEqual(['b@3.0.0'])
})

test('the bill of materials names what npm finds, with the same hashes', () => {
  const output = execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 2 ** 26,
  })
  expect(contentOf(bill(sbomOf(packages)))).toEqual(contentOf(bill(output)))
})
