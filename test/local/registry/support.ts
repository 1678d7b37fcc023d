import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { startRegistry } from '@platform/local/registry/server'
import { mediaTypes } from '@platform/oci/types'
import { temporaryFolder } from '../../support/temporary-folder.ts'

export const password = 'correct horse battery'
export const writer = { authorization: `Basic ${Buffer.from(`platform:${password}`).toString('base64')}` }

export const digestOf = (content: string | Uint8Array): string =>
  `sha256:${createHash('sha256').update(content).digest('hex')}`

export async function registryIn(folder: string, options: { maxBlobBytes?: number } = {}) {
  const failures: unknown[] = []
  const log = (_: string, details: Record<string, unknown> = {}) => void failures.push(details['error'])
  const registry = await startRegistry({ folder, port: 0, password, log, ...options })
  const url = (path: string) => `http://${registry.host}${path}`
  return {
    ...registry,
    url,
    failures,
    read: (path: string, headers: Record<string, string> = {}) => fetch(url(path), { headers }),
    send: (method: string, path: string, body?: string | Uint8Array, headers: Record<string, string> = {}) =>
      fetch(url(path), {
        method,
        headers: { ...writer, ...headers },
        ...(body !== undefined && { body: Buffer.from(body) }),
      }),
    [Symbol.asyncDispose]: () => registry.close(0),
  }
}
export type TestRegistry = Awaited<ReturnType<typeof registryIn>>

export async function freshRegistry(options: { maxBlobBytes?: number } = {}) {
  const folder = await temporaryFolder()
  const registry = await registryIn(folder.path, options)
  const dispose = async () => {
    await registry.close(0)
    await folder[Symbol.asyncDispose]()
  }
  return { ...registry, folder: folder.path, [Symbol.asyncDispose]: dispose }
}

export async function errorCodeOf(response: Response): Promise<string> {
  const body: any = await response.json()
  return body.errors[0].code
}

export async function pushBlob(registry: TestRegistry, repository: string, content: string | Uint8Array) {
  const digest = digestOf(content)
  const { status } = await registry.send('POST', `/v2/${repository}/blobs/uploads/?digest=${digest}`, content)
  if (status !== 201) throw new Error(`Pushing the blob failed with ${status}.`)
  return digest
}

const descriptor = (mediaType: string, content: string | Uint8Array) => ({
  mediaType,
  digest: digestOf(content),
  size: Buffer.byteLength(content),
})

export const manifestOf = (config: string, layer: string | Uint8Array, fields: object = {}): string =>
  JSON.stringify({
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: descriptor(mediaTypes.config, config),
    layers: [descriptor(mediaTypes.layer, layer)],
    ...fields,
  })

export async function pushImage(registry: TestRegistry, repository: string, tag: string, fields: object = {}) {
  const [config, layer] = [`{"tag":"${tag}"}`, `layer of ${repository}:${tag}`]
  await Promise.all([config, layer].map((content) => pushBlob(registry, repository, content)))
  const manifest = manifestOf(config, layer, fields)
  const response = await putManifest(registry, repository, tag, manifest)
  if (response.status !== 201)
    throw new Error(`Pushing the manifest failed with ${response.status}: ${await response.text()}`)
  return { manifest, digest: digestOf(manifest), config, layer, response }
}

export const putManifest = (
  registry: TestRegistry,
  repository: string,
  reference: string,
  manifest: string,
  type: string = mediaTypes.manifest,
): Promise<Response> =>
  registry.send('PUT', `/v2/${repository}/manifests/${reference}`, manifest, { 'content-type': type })

/** Sends the path unchanged, unlike `fetch`. */
export async function sendRaw(host: string, method: string, path: string, headers: Record<string, string> = {}) {
  const [hostname, port] = host.split(':')
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const outgoing = request({ hostname, port, method, path, headers: { ...writer, ...headers }, agent: false })
    outgoing.on('response', (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject)
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}

export async function namesIn(names: AsyncIterable<string>): Promise<string[]> {
  const listedNames: string[] = []
  for await (const name of names) listedNames.push(name)
  return listedNames
}
