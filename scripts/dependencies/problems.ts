import { directsOf, nameAt, type Packages } from './lockfile.ts'

/** Licences that ask for no more than to be named. */
const permissive = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'Python-2.0',
  'Unlicense',
  'Zlib',
])

/** Those that ask for more, of what is changed or handed on: for tools, which nobody gets from us. */
const forTools = new Set([...permissive, 'CC-BY-4.0', 'MPL-2.0'])

/** Packages that say their licence in a way that npm does not read; read in their files. */
const said: Readonly<Record<string, string>> = {
  'busboy@1.6.0': 'MIT',
  'reserved@0.1.2': 'MIT',
  'streamsearch@1.1.0': 'MIT',
}

/** A licence, or the expression of several, as SPDX writes it. */
export const licenseOf = (name: string, version: string, license: string | undefined): string =>
  license ?? said[`${name}@${version}`] ?? 'none'

const mayUse = (license: string, allowed: ReadonlySet<string>): boolean =>
  license
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((each) => allowed.has(each)))

/** What is wrong with the dependencies, a line each. */
export function problemsOf(packages: Packages, reasons: Readonly<Record<string, string>>): string[] {
  const directs = directsOf(packages)
  const names = new Set(directs.map(({ name }) => name))
  const unpinned = directs.filter(({ range, version }) => range !== version)
  const licenses = Object.entries(packages).flatMap(([path, locked]) => {
    if (!path.includes('node_modules/') || locked.link) return []
    const [name, version] = [nameAt(path, locked), locked.version ?? '']
    const license = licenseOf(name, version, locked.license)
    return mayUse(license, locked.dev ? forTools : permissive) ? [] : [`${name}@${version} has the licence ${license}.`]
  })
  return [
    ...unpinned.map(({ workspace, name, range }) => `${workspace || 'The root'} asks for ${name} ${range}: pin it.`),
    ...[...names].filter((name) => !reasons[name]).map((name) => `${name} has no reason in reasons.ts.`),
    ...Object.keys(reasons).flatMap((name) => (names.has(name) ? [] : [`${name} has a reason, and is not here.`])),
    ...new Set(licenses),
  ]
}
