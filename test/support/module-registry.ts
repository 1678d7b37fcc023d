import { buildImage, type ImageToBuild } from '@platform/oci/build'
import type { RegistryClient } from '@platform/oci/client'
import { pushImage } from '@platform/oci/push'
import { generateKeyPair } from '@platform/oci/signature/key'
import { signImage } from '@platform/oci/signature/sign'
import { type ReceivedRequest, type ServerReply, startServer } from './http-server.ts'
import { startTestRegistry } from './registry.ts'

/** This file must not import core, which reads its settings when it is imported. */

export interface ImageOptions {
  version?: string
  repository?: string
  tags?: string[]
  /** Content of `module.json`; by default a manifest that matches the labels. `false` omits the file. */
  manifest?: unknown
  labels?: Record<string, string>
  config?: ImageToBuild['config']
  files?: ImageToBuild['files']
  created?: string
}

/** The key that signs the image; `false` pushes the image without a signature. */
export type Signer = 'trusted' | 'stranger' | 'scoped' | { privateKeyPem: string } | false

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

/** Signs the image if there is a private key. Adds tags last, so that a scan never finds the image unsigned. */
export async function pushModuleImage(
  client: RegistryClient,
  id: string,
  options: ImageOptions = {},
  privateKeyPem?: string,
) {
  const { version = '1.0.0', repository = `modules/${id}` } = options
  const { manifest = writtenManifest(id, version), labels = moduleLabels(id, version) } = options
  const { tags = [version.replace('+', '_')], files = [], config, created } = options
  const content = typeof manifest === 'string' ? manifest : JSON.stringify(manifest)
  const manifestFiles = manifest === false ? [] : [{ path: '/module.json', content }]
  const parts = { labels, ...(config && { config }), ...(created !== undefined && { created }) }
  const image = await buildImage({ files: [...manifestFiles, ...files], ...parts })
  const { digest } = await pushImage(client, repository, image, [])
  if (privateKeyPem !== undefined) await signImage(client, repository, digest, privateKeyPem)
  await pushImage(client, repository, image, tags)
  const name = `${client.registry}/${repository}`
  return { reference: `${name}:${tags[0]}`, repository: name, digest }
}

export async function startModuleRegistry() {
  const registry = await startTestRegistry()
  const { host, client } = registry
  const keys = { trusted: generateKeyPair(), stranger: generateKeyPair(), scoped: generateKeyPair() }
  const settings = {
    PLAT_REGISTRY_ALLOW: host,
    PLAT_MODULE_KEYS: JSON.stringify([
      { name: 'tests', pem: keys.trusted.publicKeyPem },
      { name: 'team', pem: keys.scoped.publicKeyPem, repositories: ['team'] },
    ]),
  }

  const push = (id: string, { signer = 'trusted', ...image }: ImageOptions & { signer?: Signer } = {}) => {
    const key = typeof signer === 'string' ? keys[signer] : signer
    return pushModuleImage(client, id, image, key === false ? undefined : key.privateKeyPem)
  }
  return { ...registry, keys, settings, push }
}

export type ModuleRegistry = Awaited<ReturnType<typeof startModuleRegistry>>

type Page = (request: ReceivedRequest) => ServerReply | undefined

export async function startModuleFixtures(settings: Record<string, string> = {}) {
  const registry = await startModuleRegistry()
  const pages = new Map<string, Page>()
  const server = await startServer((request) => {
    const page = pages.get(request.url.pathname)
    return page === undefined ? { status: 404 } : page(request)
  })
  Object.assign(process.env, registry.settings, { PLAT_OUTBOUND_ALLOW: server.host }, settings)

  function page(response: Page | string): string {
    const path = `/page-${pages.size}/module.json`
    pages.set(path, typeof response === 'string' ? () => ({ status: 200, body: response }) : response)
    return `${server.url}${path}`
  }

  async function close(): Promise<void> {
    await server[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
  }
  return { ...registry, page, close }
}
