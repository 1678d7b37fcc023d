import { inspect } from 'node:util'
import type { RegistryClient } from '@platform/oci/client'
import { digestOf } from '@platform/oci/digest'
import type { RegistryErrorKind } from '@platform/oci/error'
import { mediaTypes } from '@platform/oci/types'
import { expect } from 'vitest'
import { type ServerReply, type Respond, startServer } from '../support/http-server.ts'
import { ada, all, blobOf, clientOf, failureOf } from './support.ts'

export const config = { mediaType: mediaTypes.empty, digest: digestOf('{}'), size: 2 }
export const image = { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: [config] }
export const index = {
  schemaVersion: 2,
  mediaType: mediaTypes.index,
  manifests: [{ ...config, mediaType: mediaTypes.manifest }],
}
export const imageBytes = Buffer.from(JSON.stringify(image))
export const subject = { mediaType: mediaTypes.manifest, digest: digestOf(imageBytes), size: imageBytes.length }

export const json = (value: unknown, headers: ServerReply['headers'] = {}): ServerReply => {
  const body = typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value)
  const length = String(Buffer.byteLength(body))
  return { status: 200, headers: { 'content-type': mediaTypes.manifest, 'content-length': length, ...headers }, body }
}
export const to = (location: string, status = 307): ServerReply => ({ status, headers: { location } })
type Operation = (client: RegistryClient) => Promise<unknown>
const operations = {
  repositories: (client) => all(client.repositories()),
  tags: (client) => all(client.tags('a')),
  resolve: (client) => client.resolve('a', 'latest'),
  resolveDigest: (client) => client.resolve('a', subject.digest),
  manifest: (client) => client.manifest('a', 'latest'),
  manifestDigest: (client) => client.manifest('a', subject.digest),
  blob: (client) => client.blob('a', blobOf('content')),
  hasBlob: (client) => client.hasBlob('a', digestOf('content')),
  putBlob: (client) => client.putBlob('a', Buffer.from('content')),
  putManifest: (client) => client.putManifest('a', 'latest', imageBytes, mediaTypes.manifest),
  referrers: (client) => client.referrers('a', subject.digest),
  putReferrer: (client) => client.putReferrer('a', { ...image, schemaVersion: 2, artifactType: 'test/kind', subject }),
  remove: (client) => client.remove('a', subject.digest),
} satisfies Record<string, Operation>

/** Behaviour of a registry, operation, expected error and responses. `elsewhere` is the URL of another server. */
export type Row = [
  name: string,
  operation: keyof typeof operations,
  problem: RegistryErrorKind,
  respond: (elsewhere: string) => Respond,
]

export const always =
  (reply: ServerReply): ((elsewhere: string) => Respond) =>
  () =>
  () =>
    reply

/** Requires Basic authentication, and repeats the credentials in all headers and bodies. */
const leaking =
  (respond: Respond): Respond =>
  async (request, outgoing) => {
    const { authorization } = request.headers
    if (authorization === undefined) return { status: 401, headers: { 'www-authenticate': 'Basic realm="here"' } }
    const reply = await respond(request, outgoing)
    if (reply === undefined) return undefined
    const body = JSON.stringify({ errors: [{ code: authorization, message: authorization, detail: authorization }] })
    return { body, ...reply, headers: { 'x-echo': authorization, ...reply.headers } }
  }

const secrets = [ada.password, Buffer.from(`${ada.username}:${ada.password}`).toString('base64')]

/** Runs the operation of a row, and expects its error, without secrets or requests to other hosts. */
export async function expectFailure([, operation, problem, respond]: Row): Promise<void> {
  await using other = await startServer(() => ({ status: 200, body: 'content' }))
  await using registry = await startServer(leaking(respond(other.url)))
  // Only a missing response is to exceed the limit.
  const timeoutMs = problem === 'unreachable' ? 500 : 60_000
  const { client } = clientOf(registry.host, { credentials: async () => ada, timeoutMs })
  const failure = await failureOf(operations[operation](client))
  expect(failure.problem).toBe(problem)
  expect(failure.message).toMatch(new RegExp(`${registry.host}.*\\. [A-Z].*\\.$`))
  expect(other.requests).toEqual([])
  const text = inspect(failure, { depth: Infinity, showHidden: true })
  for (const secret of secrets) expect(text).not.toContain(secret)
}
