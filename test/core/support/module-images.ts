import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { generateKeyPair } from '@platform/oci/signature/key'
import { build } from 'esbuild'
import { afterAll } from 'vitest'
import { type ImageOptions, type Signer, startModuleRegistry, writtenManifest } from '../../support/module-registry.ts'
import type { ActorPlan } from './actor-module.ts'

/**
 * A registry, a trusted key, and images of the actor module. Import this file before core: core reads the settings when
 * it is imported.
 */

export const registry = await startModuleRegistry()
/** A key that is trusted for one day. */
export const temporaryKey = generateKeyPair()
const notAfter = new Date(Date.now() + 24 * 3_600_000).toISOString()

/** A registry that accepts connections but sends no response. */
const silentServer = createServer(() => {})
await once(silentServer.listen(0, '127.0.0.1'), 'listening')
export const unresponsiveHost = `127.0.0.1:${(silentServer.address() as AddressInfo).port}`

Object.assign(process.env, {
  PLAT_REGISTRY_ALLOW: `${registry.host},${unresponsiveHost}`,
  PLAT_MODULE_KEYS: JSON.stringify([
    { name: 'tests', pem: registry.keys.trusted.publicKeyPem },
    { name: 'for a day', pem: temporaryKey.publicKeyPem, notAfter },
  ]),
})

afterAll(async () => {
  await registry[Symbol.asyncDispose]()
  silentServer.close()
  silentServer.closeAllConnections()
})

const bundle = build({
  entryPoints: [new URL('actor-module.ts', import.meta.url).pathname],
  bundle: true,
  platform: 'node',
  format: 'esm',
  write: false,
  logLevel: 'error',
})

export interface PushedModule
  extends Partial<ActorPlan>, Pick<ImageOptions, 'tags' | 'labels' | 'manifest' | 'created' | 'repository'> {
  id: string
  signer?: Signer
  /** Overrides members of the `spec` in the manifest. */
  spec?: object
  entrypoint?: readonly string[]
}

export async function pushModule(module: PushedModule) {
  const { id, version = '1.0.0', jobs = {}, spec = {}, entrypoint = ['node', '/app/main.mjs'] } = module
  const manifest = writtenManifest(id, version, {
    healthEndpoint: `/api/${id}/alive`,
    healthChecks: [{ name: 'behaviour', path: '/health/behaviour', tags: ['critical'] }],
    backgroundJobs: Object.entries(jobs).map(([job, intervalSeconds]) => ({
      id: job,
      description: 'A background job.',
      intervalSeconds,
    })),
    events: module.subscribes ?? [],
    ...spec,
  })
  const { outputFiles } = await bundle
  return registry.push(id, {
    manifest,
    ...module,
    files: [{ path: '/app/main.mjs', content: outputFiles[0]?.contents ?? '' }],
    config: {
      Entrypoint: [...entrypoint, JSON.stringify({ ...module, version } satisfies ActorPlan)],
      WorkingDir: '/app',
    },
  })
}
