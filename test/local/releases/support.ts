import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { filesByFunction } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { version as checkoutVersion } from '@platform/core/lib/version'
import { localSupervisor } from '@platform/worker/updates/target/local-supervisor'
import type { StagedRelease } from '@platform/worker/updates/target/port'
import { zipSync } from 'fflate'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { platformIn } from '../support/platform.ts'
import { isLong } from '../../support/long.ts'

const functionNames = [...Object.keys(filesByFunction), modulePaths.function, fallback.function]
const names = [...functionNames, 'bootstrap', 'queue/batches', 'queue/webhooks', 'schedule/sweep']

export const checkout = { version: checkoutVersion }
export const stagedCheckout: StagedRelease = {
  ...checkout,
  functionNames: [],
  fetchFunction: () => Promise.reject(new Error('The checkout is not fetched.')),
}

export const reporting = (version: string): string =>
  `export const handler = async () => ({ statusCode: 200, headers: { 'x-version': '${version}' }, body: '${version}' })`

// The platform imports a staged function only if the checkout has it.
const checkoutSources = Object.fromEntries(
  [...functionNames, 'queue/batches'].map((name) => [name, reporting('checkout')]),
)

export const zipOf = (files: Record<string, string>): Uint8Array =>
  zipSync(Object.fromEntries(Object.entries(files).map(([path, text]) => [path, new TextEncoder().encode(text)])))

export function releaseOf(version: string, sources: Record<string, string> = {}): StagedRelease {
  const allSources = { ...Object.fromEntries(names.map((name) => [name, reporting(version)])), ...sources }
  const zips = new Map(Object.entries(allSources).map(([name, source]) => [name, zipOf({ 'index.mjs': source })]))
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

export const identityOf = ({ version, repository, digest }: StagedRelease) => ({
  version,
  ...(repository !== undefined && { repository }),
  ...(digest !== undefined && { digest }),
})

export const folderOf = ({ version, digest = '' }: StagedRelease): string => `${version}-${digest.slice(7, 19)}`

export const currentIn = async (dataDir: string): Promise<string | undefined> =>
  readFile(join(dataDir, 'releases/current.json'), 'utf8').then(
    (text) => JSON.parse(text).release.version,
    () => undefined,
  )

export const targetOf = ({ updateSupervisor }: { updateSupervisor: { url: string; token: string } }) =>
  localSupervisor(updateSupervisor)

export async function startUpdatable(sources: Record<string, string> = {}) {
  const folder = await temporaryFolder()
  // Updates replace the code of several threads.
  const settings = { PLAT_FUNCTION_THREADS: '2' }
  const platform = await platformIn(folder.path, { ...checkoutSources, ...sources }, settings)
  const dataDir = join(folder.path, 'data')
  const target = targetOf(platform)
  return {
    ...platform,
    target,
    dataDir,
    releases: async () => (await readdir(join(dataDir, 'releases'))).toSorted(),
    apply: async (release: StagedRelease) => {
      const releaseBefore = await target.current()
      await target.stage(release)
      await target.shift(identityOf(release), 100)
      await target.commit(identityOf(release), releaseBefore)
    },
    versions: async (count = 20) => {
      const seenVersions = new Set<string>()
      for (let index = 0; index < count; index++)
        seenVersions.add((await request(`${platform.url}/health/live`)).version)
      return [...seenVersions]
    },
    async [Symbol.asyncDispose]() {
      await platform.stop()
      await folder[Symbol.asyncDispose]()
    },
  }
}

const paths = ['/health/live', '/api/v1/clusters', '/api/v1/sites', '/.well-known/jwks.json']

/** In short runs, clients pause between requests, because they share the processor with the platform. */
const clientPauseMs = isLong ? 0 : 10

export function startClients(url: string, count = 10) {
  const versions = new Set<string>()
  const results = { requests: 0, failures: [] as string[], versions: versions as ReadonlySet<string> }
  const stopController = new AbortController()
  const waits: { until: number; resolve: () => void }[] = []
  const run = async (_: unknown, number: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let index = number; !stopController.signal.aborted; index++) {
      try {
        const { status, version } = await request(`${url}${paths[index % paths.length]}`, agent)
        if (status === 200) versions.add(version)
        else results.failures.push(`status ${status}`)
      } catch (error) {
        results.failures.push(String(error))
      }
      results.requests += 1
      for (const { until, resolve } of waits) if (results.requests >= until) resolve()
      await delay(clientPauseMs)
    }
    agent.destroy()
  }
  const running = Array.from({ length: count }, run)
  return Object.assign(results, {
    /** Resolves after `count` more responses. */
    waitForMore: (count: number) =>
      new Promise<void>((resolve) => void waits.push({ until: results.requests + count, resolve })),
    stop: async () => {
      stopController.abort()
      await Promise.all(running)
    },
  })
}

export const request = (url: string, agent?: Agent): Promise<{ status: number; version: string }> =>
  new Promise((resolve, reject) => {
    get(url, { ...(agent && { agent }) }, (response) => {
      const { statusCode = 0, headers } = response
      response.on('error', reject)
      response.on('end', () => resolve({ status: statusCode, version: String(headers['x-version']) }))
      response.resume()
    }).on('error', reject)
  })
