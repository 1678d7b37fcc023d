import type { FileToPack } from '@platform/oci/pack'
import { readImage } from '@platform/oci/image'
import { unpackImage } from '@platform/oci/unpack'
import { type ClientOptions, type RegistryClient, registryClient } from '@platform/oci/client'
import { digestOf } from '@platform/oci/digest'
import { RegistryError } from '@platform/oci/error'
import { plainTransport } from '@platform/oci/plain-transport'
import type { Transport } from '@platform/oci/transport'
import { join } from 'node:path'
import { memoryRegistry } from '../support/memory-registry.ts'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { type RegistryGuard, startDockerRegistry } from '../support/docker-registry.ts'
import { imageOf, layerOf, type RawEntry, tarOf } from '../support/image-layers.ts'
import { writeLayout } from '../support/oci-layout.ts'
import { outputOf } from '../support/installed-programs.ts'
import { readTree } from '../support/read-tree.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

export const ada = { username: 'ada', password: 'correct horse battery' }

export function clientOf(host: string, options: Partial<ClientOptions> = {}) {
  const sent: string[] = []
  const transport: Transport = (url, request) => {
    sent.push(`${request.method} ${new URL(url).pathname}`)
    return plainTransport(url, request)
  }
  return { client: registryClient(host, { transport, ...options }), sent }
}

export async function failureOf(work: Promise<unknown>): Promise<RegistryError> {
  const outcome = await work.then(
    () => 'success',
    (error: unknown) => error,
  )
  if (outcome instanceof RegistryError) return outcome
  throw new Error('Expected a RegistryError.', { cause: outcome })
}

export async function all(list: AsyncIterable<string>): Promise<string[]> {
  const items: string[] = []
  for await (const item of list) items.push(item)
  return items
}

export const labels = { 'org.platform.module.id': 'hello' }

/** Pushes `team/hello:1.0.0` with skopeo. Returns the digest of the manifest that skopeo reads back. */
export async function pushBySkopeo(host: string, architectures?: readonly string[]): Promise<string> {
  await using folder = await temporaryFolder()
  await writeLayout(folder.path, labels, architectures)
  const target = `docker://${host}/team/hello:1.0.0`
  const credentials = `${ada.username}:${ada.password}`
  const options = ['--all', '--quiet', '--dest-tls-verify=false', '--dest-creds', credentials]
  await outputOf('skopeo', 'copy', ...options, `oci:${folder.path}:latest`, target)
  return digestOf(await outputOf('skopeo', 'inspect', '--raw', '--tls-verify=false', '--creds', credentials, target))
}

export const blobOf = (text: string) => ({
  mediaType: 'text/plain',
  digest: digestOf(text),
  size: Buffer.byteLength(text),
})

/** Returns a transport that maps origins to local servers, and fails for all others. */
export const routed =
  (servers: Readonly<Record<string, string>>): Transport =>
  (url, request) => {
    const { origin } = new URL(url)
    const server = servers[origin]
    if (server === undefined) throw new Error('No route to host.')
    return plainTransport(url.replace(origin, server), request)
  }

export const files: FileToPack[] = [
  { path: '/module.json', content: '{"id":"hello"}' },
  { path: 'app/main.js', content: 'console.log(1)', mode: 0o755 },
  { path: `app/${'long/'.repeat(50)}ä.js`, content: 'deep' },
]

export const file = (name: string, content = name): RawEntry => ({ name, content })
export const folder = (name: string): RawEntry => ({ name, type: 'directory' })
export const symlink = (name: string, linkname: string): RawEntry => ({ name, type: 'symlink', linkname })
export const hardLink = (name: string, linkname: string): RawEntry => ({ name, type: 'link', linkname })

export const copy = (from: string, to: string, ...options: string[]): Promise<string> =>
  outputOf('skopeo', 'copy', '--quiet', '--src-tls-verify=false', '--dest-tls-verify=false', ...options, from, to)

export async function unpackByUmoci(address: string): Promise<Record<string, string>> {
  await using folder = await temporaryFolder()
  await copy(address, `oci:${folder.path}/layout:it`)
  await outputOf('umoci', 'unpack', '--rootless', '--image', `${folder.path}/layout:it`, `${folder.path}/bundle`)
  return await readTree(`${folder.path}/bundle/rootfs`)
}

export async function unpackTag(client: RegistryClient, repository: string, tag: string) {
  await using store = await temporaryFolder()
  const image = await readImage(client, repository, tag)
  return await readTree(await unpackImage(client, image!, store.path))
}

export async function storeImage(...layers: (RawEntry[] | Parameters<typeof imageOf>[1])[]) {
  const folder = await temporaryFolder()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  const client = memoryRegistry()
  const store = join(folder.path, 'a', 'store')
  const builtLayers = layers.map(async (layer) => (Array.isArray(layer) ? layerOf(await tarOf(layer)) : layer))
  const image = await imageOf(client, ...(await Promise.all(builtLayers)))
  const unpack = (limits?: Parameters<typeof unpackImage>[3]) => unpackImage(client, image, store, limits)
  return { client, image, folder: folder.path, store, unpack }
}

export const unpackLayers = async (...layers: Parameters<typeof storeImage>): Promise<Record<string, string>> =>
  readTree(await (await storeImage(...layers)).unpack())

export function useRegistry(guard: () => RegistryGuard | undefined = () => undefined) {
  let registry: Awaited<ReturnType<typeof startDockerRegistry>> | undefined
  beforeAll(async () => {
    registry = await startDockerRegistry(guard())
  })
  afterAll(() => registry?.[Symbol.asyncDispose]())
  return {
    get host() {
      return registry?.host ?? ''
    },
  }
}
