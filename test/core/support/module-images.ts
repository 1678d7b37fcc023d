import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startRegistry } from '@platform/local/registry/server'
import { buildImage } from '@platform/oci/build'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { pushImage } from '@platform/oci/push'
import { signImage } from '@platform/oci/signature/sign'
import { build } from 'esbuild'
import { afterAll } from 'vitest'
import type { ActorPlan } from './actor-module.ts'

/**
 * A registry, a key that the platform trusts, and images of modules that do as they are told. Which registry the platform
 * may reach, and whom it trusts, are settings that are read when core is first imported: import this file before it.
 */

export const folder = mkdtempSync(join(tmpdir(), 'plat-'))
const password = 'a password of the tests'

const startAt = (port: number) => startRegistry({ folder: join(folder, 'registry'), port, password, log: () => {} })

export const registry = await startAt(0)
const ownKey = newKey()
export const { privateKey } = ownKey
/** A key that is trusted for a day only. */
export const temporaryKey = newKey()
const notAfter = new Date(Date.now() + 24 * 3_600_000).toISOString()

/** A registry that takes connections and says nothing. */
const silent = createServer(() => {})
await once(silent.listen(0, '127.0.0.1'), 'listening')
export const unresponsiveHost = `127.0.0.1:${(silent.address() as AddressInfo).port}`

Object.assign(process.env, {
  PLAT_REGISTRY_ALLOW: `${registry.host},${unresponsiveHost}`,
  PLAT_MODULE_KEYS: JSON.stringify([
    { name: 'tests', pem: ownKey.publicKey },
    { name: 'for a day', pem: temporaryKey.publicKey, notAfter },
  ]),
})

afterAll(async () => {
  await registry.close(0)
  silent.close()
  silent.closeAllConnections()
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
})

/** The registry is away while some work is done. */
export async function withoutRegistry(work: () => Promise<unknown>): Promise<void> {
  await registry.close(0)
  try {
    await work()
  } finally {
    Object.assign(registry, await startAt(Number(registry.host.split(':')[1])))
  }
}

export function newKey() {
  return generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
}

export const client = registryClient(registry.host, {
  transport: plainTransport,
  credentials: async () => ({ username: 'platform', password }),
})

const bundled = build({
  entryPoints: [new URL('actor-module.ts', import.meta.url).pathname],
  bundle: true,
  platform: 'node',
  format: 'esm',
  write: false,
  logLevel: 'error',
})

/** An image of a module, and what is unusual about it. */
export interface PushedModule extends Partial<ActorPlan> {
  id: string
  tags?: string[]
  /** Who signs it: the trusted key, none, or another one's PEM. */
  signedBy?: string | null
  /** What its labels say, where that differs from its manifest. */
  labels?: Record<string, string>
  /** Members of `spec`. */
  spec?: object
  /** The whole text of its module.json, where it is to be broken. */
  manifest?: string
  created?: string
  repository?: string
  entrypoint?: readonly string[]
}

const manifestOf = ({ id, version = '1.0.0', jobs = {}, spec = {} }: PushedModule) => ({
  metadata: { id, name: `Module ${id}`, version, description: 'A module under test.', author: 'Tests' },
  spec: {
    sdkVersion: '>=0.1.0 <1.0.0',
    image: `registry.example.com/modules/${id}:${version}`,
    apiBasePath: `/api/${id}`,
    healthEndpoint: `/api/${id}/alive`,
    healthChecks: [{ name: 'mood', path: '/health/mood', tags: ['critical'] }],
    backgroundJobs: Object.entries(jobs).map(([job, intervalSeconds]) => ({
      id: job,
      description: 'Does as it is told.',
      intervalSeconds,
    })),
    ...spec,
  },
})

/** Builds, pushes and signs an image. Answers its reference and its digest. */
export async function pushModule(module: PushedModule): Promise<{ reference: string; digest: string }> {
  const { id, version = '1.0.0', tags = [version], signedBy = privateKey, labels, manifest, created } = module
  const { repository = `modules/${id}`, entrypoint = ['node', '/app/main.mjs'] } = module
  const { outputFiles } = await bundled
  const image = await buildImage({
    files: [
      { path: '/module.json', content: manifest ?? JSON.stringify(manifestOf(module)) },
      { path: '/app/main.mjs', content: outputFiles[0]?.contents ?? '' },
    ],
    config: {
      Entrypoint: [...entrypoint, JSON.stringify({ ...module, version } satisfies ActorPlan)],
      WorkingDir: '/app',
    },
    labels: labels ?? {
      'org.platform.module': 'true',
      'org.platform.module.id': id,
      'org.platform.module.version': version,
    },
    ...(created !== undefined && { created }),
  })
  const { digest } = await pushImage(client, repository, image, [])
  if (signedBy !== null) await signImage(client, repository, digest, signedBy)
  await pushImage(client, repository, image, tags)
  return { reference: `${registry.host}/${repository}:${tags[0]}`, digest }
}
