import { startRegistry } from '@platform/local/registry/server'
import { buildImage, type ImageToBuild } from '@platform/oci/build'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { pushImage } from '@platform/oci/push'
import { generateKeyPair } from '@platform/oci/signature/key'
import { signImage } from '@platform/oci/signature/sign'
import { temporaryFolder } from './temporary-folder.ts'

/** A registry with module images. Must not import core, which reads the settings that it creates. */

const password = 'correct horse battery'

/** Properties of an image; the default is a valid, signed module. */
export interface ImageOptions {
  version?: string
  repository?: string
  tag?: string
  /** `module.json`; by default it matches the labels. `false`: no manifest. */
  manifest?: unknown
  labels?: Record<string, string>
  /** The signer. `false`: no signature. */
  signer?: 'trusted' | 'stranger' | 'scoped' | false
  config?: ImageToBuild['config']
  files?: ImageToBuild['files']
}

export const writtenManifest = (id: string, version = '1.0.0', spec: object = {}, metadata: object = {}) => ({
  metadata: { id, name: `Module ${id}`, version, description: 'A module under test.', author: 'Tests', ...metadata },
  spec: {
    sdkVersion: '[0.1.0,1.0.0)',
    image: `registry.example.com/modules/${id}:${version}`,
    apiBasePath: `/api/${id}`,
    healthEndpoint: '/health',
    ...spec,
  },
})

export const moduleLabels = (id: string, version = '1.0.0') => ({
  'org.platform.module': 'true',
  'org.platform.module.id': id,
  'org.platform.module.version': version,
  'org.opencontainers.image.source': 'https://example.com/module',
})

/** Starts a registry, with the settings to use it. */
export async function startModuleRegistry() {
  await using starting = new AsyncDisposableStack()
  const folder = starting.use(await temporaryFolder()).path
  const registry = await startRegistry({ folder, port: 0, password, log: () => undefined })
  starting.defer(() => registry.close(0))
  const { host } = registry
  const credentials = async () => ({ username: 'platform', password })
  const client = registryClient(host, { transport: plainTransport, credentials })
  const keys = { trusted: generateKeyPair(), stranger: generateKeyPair(), scoped: generateKeyPair() }
  const settings = {
    PLAT_REGISTRY_ALLOW: host,
    PLAT_MODULE_KEYS: JSON.stringify([
      { name: 'tests', pem: keys.trusted.publicKeyPem },
      { name: 'team', pem: keys.scoped.publicKeyPem, repositories: ['team'] },
    ]),
  }

  /** Pushes a module image. */
  async function push(id: string, wish: ImageOptions = {}) {
    const {
      version = '1.0.0',
      repository = `modules/${id}`,
      tag = version.replace('+', '_'),
      signer = 'trusted',
    } = wish
    const { manifest = writtenManifest(id, version), labels = moduleLabels(id, version), config, files = [] } = wish
    const content = typeof manifest === 'string' ? manifest : JSON.stringify(manifest)
    const own = manifest === false ? [] : [{ path: '/module.json', content }]
    const built = await buildImage({ files: [...own, ...files], labels, ...(config && { config }) })
    const { digest } = await pushImage(client, repository, built, [tag])
    if (signer !== false) await signImage(client, repository, digest, keys[signer].privateKeyPem)
    return { reference: `${host}/${repository}:${tag}`, repository: `${host}/${repository}`, digest }
  }

  const started = starting.move()
  return { host, client, keys, settings, push, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

export type ModuleRegistry = Awaited<ReturnType<typeof startModuleRegistry>>
