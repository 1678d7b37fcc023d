import { type Locked, nameAt, type Packages, resolveFrom, workspacesOf } from './lockfile.ts'
import { licenseOf } from './problems.ts'

/** What a package is called in a bill of materials, and where it comes from. */
const refOf = (path: string, locked: Locked): string => `${nameAt(path, locked)}@${locked.version}`
const purlOf = (ref: string): string => `pkg:npm/${ref.replace('@', ref.startsWith('@') ? '%40' : '@')}`

/** Excluded is what is needed to build and test alone. */
const scopeOf = ({ dev, optional, devOptional }: Locked): string => {
  if (dev) return 'excluded'
  return optional || devOptional ? 'optional' : 'required'
}

const hashesOf = ({ integrity }: Locked) => {
  const [, content] = /^sha512-(.+)$/.exec(integrity ?? '') ?? []
  return content && [{ alg: 'SHA-512', content: Buffer.from(content, 'base64').toString('hex') }]
}

const licensesOf = (path: string, locked: Locked) => {
  const license = licenseOf(nameAt(path, locked), locked.version ?? '', locked.license)
  if (!path.includes('node_modules/')) return undefined
  return [license.includes(' ') ? { expression: license } : { license: { id: license } }]
}

function componentOf(path: string, locked: Locked) {
  const ref = refOf(path, locked)
  const [hashes, licenses] = [hashesOf(locked), licensesOf(path, locked)]
  return {
    type: path.includes('node_modules/') ? 'library' : 'application',
    'bom-ref': ref,
    name: nameAt(path, locked),
    version: locked.version,
    scope: scopeOf(locked),
    purl: purlOf(ref),
    ...(hashes && { hashes }),
    ...(licenses && { licenses }),
  }
}

/** What a package gets of what it asks for; tools are asked for by workspaces alone. */
function neededBy(packages: Packages, path: string, locked: Locked): string[] {
  const { dependencies, devDependencies, optionalDependencies, peerDependencies } = locked
  const asked = { ...peerDependencies, ...optionalDependencies, ...dependencies, ...devDependencies }
  const workspaces = path === '' ? workspacesOf(packages).filter((workspace) => workspace !== '') : []
  const found = Object.keys(asked).flatMap((name) => resolveFrom(packages, path, name) ?? [])
  return [...workspaces, ...found].map((each) => refOf(each, packages[each]!))
}

const lines = (items: readonly object[]): string => `[\n${items.map((each) => JSON.stringify(each)).join(',\n')}\n]`

const sorted = (refs: Iterable<string>): string[] => [...new Set(refs)].toSorted()

/** The same package may lie in several places, and find others in each. */
function graphOf(packages: Packages, own: readonly (readonly [string, Locked])[]) {
  const graph = new Map<string, string[]>()
  for (const [path, locked] of own) {
    const ref = refOf(path, locked)
    graph.set(ref, sorted([...(graph.get(ref) ?? []), ...neededBy(packages, path, locked)]))
  }
  return sorted(graph.keys()).map((ref) => ({ ref, dependsOn: graph.get(ref) }))
}

/**
 * The bill of materials of a lockfile, as CycloneDX 1.5: every package by version, licence and hash, and who asks for whom. The
 * same lockfile makes the same bytes, with a line for each package.
 */
export function sbomOf(packages: Packages): string {
  const own = Object.entries(packages).filter(([, { link }]) => !link)
  const components = own.filter(([path]) => path !== '').map(([path, locked]) => componentOf(path, locked))
  const unique = new Map(components.toReversed().map((each) => [each['bom-ref'], each]))
  const { scope: _scope, ...root } = componentOf('', packages['']!)
  return `{
"bomFormat": "CycloneDX",
"specVersion": "1.5",
"version": 1,
"metadata": ${JSON.stringify({ component: root })},
"components": ${lines(sorted(unique.keys()).map((ref) => unique.get(ref)!))},
"dependencies": ${lines(graphOf(packages, own))}
}
`
}
