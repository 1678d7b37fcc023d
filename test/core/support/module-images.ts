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
 * A registry, a trusted key, and images of the actor module. Import this file before core: core reads the settings when it
 * is imported.
 */

export const folder = mkdtempSync(join(tmpdir(), 'plat-'))
const password = 'a password of the tests'

const startAt = (port: number) => startRegistry({ folder: join(folder, 'registry'), port, password, log: () => {} })

export const registry = await startAt(0)
const ownKey = newKey()
export const { privateKey } = ownKey
/** A key that is trusted for one day. */
export const temporaryKey = newKey()
const notAfter = new Date(Date.now() + 24 * 3_600_000).toISOString()

/** A registry that accepts connections but sends no response. */
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

/** Runs the work while the registry is stopped. */
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

/** The module of an image, with overrides. */
export interface PushedModule extends Partial<ActorPlan> {
  id: string
  tags?: string[]
  /** PEM of the signing key, by default the trusted one; null for no signature. */
  signedBy?: string | null
  /** Labels, if they differ from the manifest. */
  labels?: Record<string, string>
  /** Members of `spec`. */
  spec?: object
  /** The text of module.json. */
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
      description: 'A background job.',
      intervalSeconds,
    })),
    ...spec,
  },
})

/** Builds, signs and pushes an image. */
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
