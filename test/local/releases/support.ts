import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { functions } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { version as checkoutVersion } from '@platform/core/lib/version'
import { localSupervisor } from '@platform/worker/updates/target/local-supervisor'
import type { StagedRelease } from '@platform/worker/updates/target/port'
import { zipSync } from 'fflate'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { platformIn } from '../support/platform.ts'
import { request } from './clients.ts'

/** All functions of a platform of `test/local/support/platform.ts`. */
const served = [...Object.keys(functions), modulePaths.function, fallback.function]
const names = [...served, 'bootstrap', 'queue/jobs', 'schedule/sweep']

/** The release that the platform was deployed with. */
export const checkout = { version: checkoutVersion }
export const stagedCheckout: StagedRelease = {
  ...checkout,
  functionNames: [],
  fetchFunction: () => Promise.reject(new Error('The checkout is not fetched.')),
}

/** Source of a function that reports its version. */
export const reporting = (version: string): string =>
  `export const handler = async () => ({ statusCode: 200, headers: { 'x-version': '${version}' }, body: '${version}' })`

/** Sources of the checkout's functions, which report `checkout`. */
const checkoutSources = Object.fromEntries(served.map((name) => [name, reporting('checkout')]))

export const zipOf = (files: Record<string, string>): Uint8Array =>
  zipSync(Object.fromEntries(Object.entries(files).map(([path, text]) => [path, new TextEncoder().encode(text)])))

/** A release whose functions report its version, except those with a given source. */
export function releaseOf(version: string, sources: Record<string, string> = {}): StagedRelease {
  const all = { ...Object.fromEntries(names.map((name) => [name, reporting(version)])), ...sources }
  const zips = new Map(Object.entries(all).map(([name, source]) => [name, zipOf({ 'index.mjs': source })]))
  return stagedOf(version, zips)
}

export function stagedOf(version: string, zips: ReadonlyMap<string, Uint8Array>): StagedRelease {
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

/** The identity of a release, as steps after `stage` name it. */
export const identityOf = ({ version, repository, digest }: StagedRelease) => ({
  version,
  ...(repository !== undefined && { repository }),
  ...(digest !== undefined && { digest }),
})

/** The name of a release's folder. */
export const folderOf = ({ version, digest = '' }: StagedRelease): string => `${version}-${digest.slice(7, 19)}`

/** The version in `current.json`; undefined without that file. */
export const currentIn = async (dataDir: string): Promise<string | undefined> =>
  readFile(join(dataDir, 'releases/current.json'), 'utf8').then(
    (text) => JSON.parse(text).release.version,
    () => undefined,
  )

/** The update target of a platform. */
export const targetOf = ({ updateSupervisor }: { updateSupervisor: { url: string; token: string } }) =>
  localSupervisor(updateSupervisor)

/** A platform with the checkout's functions, and its update target. */
export async function startUpdatable(sources: Record<string, string> = {}) {
  const folder = await temporaryFolder()
  const platform = await platformIn(folder.path, { ...checkoutSources, ...sources })
  const dataDir = join(folder.path, 'data')
  const target = targetOf(platform)
  return {
    ...platform,
    target,
    dataDir,
    releases: async () => (await readdir(join(dataDir, 'releases'))).toSorted(),
    /** Stages and commits a release, as an update does. */
    apply: async (release: StagedRelease) => {
      const before = await target.current()
      await target.stage(release)
      await target.shift(identityOf(release), 100)
      await target.commit(identityOf(release), before)
    },
    /** The distinct versions that respond to consecutive requests. */
    versions: async (count = 20) => {
      const seen = new Set<string>()
      for (let index = 0; index < count; index++) seen.add((await request(`${platform.url}/health/live`)).version)
      return [...seen]
    },
    async [Symbol.asyncDispose]() {
      await platform.stop()
      await folder[Symbol.asyncDispose]()
    },
  }
}
