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
type Ask = (client: RegistryClient) => Promise<unknown>
const ask = {
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
} satisfies Record<string, Ask>

/** What a registry does, what it was asked, what that amounts to. `elsewhere` is the address of another server. */
export type Row = [
  name: string,
  ask: keyof typeof ask,
  problem: RegistryErrorKind,
  respond: (elsewhere: string) => Respond,
]

export const always =
  (reply: ServerReply): ((elsewhere: string) => Respond) =>
  () =>
  () =>
    reply

/** Every registry here asks for the password first, and from then on tells it to whoever listens. */
const telling =
  (respond: Respond): Respond =>
  async (seen, outgoing) => {
    const { authorization } = seen.headers
    if (authorization === undefined) return { status: 401, headers: { 'www-authenticate': 'Basic realm="here"' } }
    const reply = await respond(seen, outgoing)
    if (reply === undefined) return undefined
    const quoted = JSON.stringify({ errors: [{ code: authorization, message: authorization, detail: authorization }] })
    return { body: quoted, ...reply, headers: { 'x-told': authorization, ...reply.headers } }
  }

const secrets = [ada.password, Buffer.from(`${ada.username}:${ada.password}`).toString('base64')]

/** Asks a registry that does what a row says, and looks at what that ends in. */
export async function expectFailure([, question, problem, respond]: Row): Promise<void> {
  await using other = await startServer(() => ({ status: 200, body: 'content' }))
  await using registry = await startServer(telling(respond(other.url)))
  // Only who says nothing in time is to be waited for: on a busy machine, others take longer, too.
  const timeoutMs = problem === 'unreachable' ? 500 : 60_000
  const { client } = clientOf(registry.host, { credentials: async () => ada, timeoutMs })
  const failure = await failureOf(ask[question](client))
  expect(failure.problem).toBe(problem)
  expect(failure.message).toMatch(new RegExp(`${registry.host}.*\\. [A-Z].*\\.$`))
  expect(other.requests).toEqual([])
  const everything = inspect(failure, { depth: Infinity, showHidden: true })
  for (const secret of secrets) expect(everything).not.toContain(secret)
}
