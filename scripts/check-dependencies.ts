/**
 * Fails for dependencies that are not pinned, lack a reason in docs/dependencies.md or have a licence that is not
 * allowed, and for too many installed packages.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { report, root } from './source.ts'

interface LockedPackage {
  version?: string
  license?: string
  dev?: boolean
  devOptional?: boolean
  link?: boolean
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

/** Licences that require at most attribution. */
const permissiveLicenses = new Set(
  '0BSD Apache-2.0 BlueOak-1.0.0 BSD-2-Clause BSD-3-Clause CC0-1.0 ISC MIT Python-2.0 Unlicense Zlib'.split(' '),
)

/** Tools are not part of the product, so licences with conditions for redistribution are allowed too. */
const toolLicenses = new Set([...permissiveLicenses, 'CC-BY-4.0', 'MPL-2.0'])

const isAllowed = (license: string, allowedNames: ReadonlySet<string>): boolean =>
  license
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((each) => allowedNames.has(each)))

/** Maximum number of packages of an installation without development packages. */
const maxInstalledPackages = 150

/** Returns the problems of a lockfile and its page of reasons, one line each. */
export function dependencyProblems(packages: Readonly<Record<string, LockedPackage>>, page: string): string[] {
  const explainedNames = new Set([...page.matchAll(/^\| `([^`]+)` \| \S/gm)].map(([, name]) => name))
  const directDependencies = Object.entries(packages)
    .filter(([path]) => !path.includes('node_modules/'))
    .flatMap(([path, { dependencies, devDependencies }]) =>
      Object.entries({ ...dependencies, ...devDependencies }).map(([name, range]) => ({ path, name, range })),
    )
    .filter(({ name }) => !name.startsWith('@platform/'))
  const names = new Set(directDependencies.map(({ name }) => name))
  const installedPackages = Object.entries(packages).filter(
    ([path, { dev, devOptional, link }]) => path.includes('node_modules/') && !dev && !devOptional && !link,
  )
  return [
    ...(installedPackages.length > maxInstalledPackages
      ? [`npm ci --omit=dev installs ${installedPackages.length} packages; the limit is ${maxInstalledPackages}`]
      : []),
    ...directDependencies
      .filter(({ range }) => !/^(npm:.+@)?\d+\.\d+\.\d+\S*$/.test(range))
      .map(({ path, name, range }) => `${path || 'package.json'}: pin ${name} (${range})`),
    ...[...names]
      .filter((name) => !explainedNames.has(name))
      .map((name) => `docs/dependencies.md: ${name} has no reason`),
    ...[...explainedNames]
      .filter((name) => !names.has(name!))
      .map((name) => `docs/dependencies.md: ${name} is not used`),
    ...Object.entries(packages).flatMap(([path, { version, license, dev, link }]) => {
      if (!path.includes('node_modules/') || link) return []
      const name = path.split('node_modules/').at(-1) ?? path
      const foundLicense = license ?? 'none'
      return isAllowed(foundLicense, dev ? toolLicenses : permissiveLicenses)
        ? []
        : [`${name}@${version}: licence ${foundLicense} is not allowed`]
    }),
  ]
}

if (import.meta.main) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  report(dependencyProblems(packages, readFileSync(join(root, 'docs/dependencies.md'), 'utf8')))
}
