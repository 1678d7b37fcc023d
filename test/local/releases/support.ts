import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { functions } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { localSupervisor } from '@platform/worker/updates/target/local-supervisor'
import type { StagedRelease } from '@platform/worker/updates/target/port'
import { zipSync } from 'fflate'

/** Every function that the platforms of `test/local/runner/support.ts` have. */
const others = ['bootstrap', 'queue/jobs', 'schedule/sweep', modulePaths.function, fallback.function]
const names = [...Object.keys(functions), ...others]

/** Source of a function that says which version it is of, to HTTP and to whoever invokes it. */
export const saying = (version: string): string =>
  `export const handler = async () => ({ statusCode: 200, headers: { 'x-version': '${version}' }, body: '${version}' })`

export const zipOf = (files: Record<string, string>): Uint8Array =>
  zipSync(Object.fromEntries(Object.entries(files).map(([path, text]) => [path, new TextEncoder().encode(text)])))

/** A release whose functions say their version, but for those given as source text. */
export function releaseOf(version: string, sources: Record<string, string> = {}): StagedRelease {
  const all = { ...Object.fromEntries(names.map((name) => [name, saying(version)])), ...sources }
  const zips = new Map(Object.entries(all).map(([name, source]) => [name, zipOf({ 'index.mjs': source })]))
  return stagedOf(version, zips)
}

export const stagedOf = (version: string, zips: ReadonlyMap<string, Uint8Array>): StagedRelease => {
  const sum = createHash('sha256').update(version)
  for (const zip of zips.values()) sum.update(zip)
  return {
    version,
    repository: 'registry.example.com/platform/releases',
    digest: `sha256:${sum.digest('hex')}`,
    functionNames: [...zips.keys()],
    fetchFunction: async (name) => zips.get(name) ?? new Uint8Array(),
  }
}

/** A release without its functions, as steps after `stage` name it. */
export const named = ({ version, repository = '', digest = '' }: StagedRelease) => ({ version, repository, digest })

/** Its folder below that of the releases. */
export const folderOf = ({ version, digest = '' }: StagedRelease): string => `${version}-${digest.slice(7, 19)}`

/** What `current.json` says; undefined where there is none. */
export const currentIn = async (dataDir: string): Promise<string | undefined> =>
  readFile(join(dataDir, 'releases/current.json'), 'utf8').then(
    (text) => JSON.parse(text).release.version,
    () => undefined,
  )

/** The target of updates, as the functions of a platform have it. */
export const targetOf = ({ updateHost }: { updateHost: { url: string; token: string } }) => localSupervisor(updateHost)
