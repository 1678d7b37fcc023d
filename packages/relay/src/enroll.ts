import type { EnrollResponse, EnrollRequest } from '@platform/contract/relay'
import { createPublicKey, type KeyObject } from 'node:crypto'
import { hostname } from 'node:os'
import { retryUntilDecision } from './backoff.ts'
import type { ServerClock } from './clock.ts'
import { FatalError } from './exit-codes.ts'
import { type RelayResponse, codeOf, post, RetryableError } from './http.ts'
import { type Identity, keyFor } from './identity.ts'
import { isJsonObject, type JsonObject } from './json.ts'
import { warn } from './log.ts'
import type { NodeConfig } from './nodes.ts'
import type { EnrollmentToken } from './options.ts'
import { relayVersion } from './version.ts'

export type Enrollment = {
  server: string
  token: EnrollmentToken
  displayName: string
  nodes: NodeConfig[]
  stateFolder: string
  clock: ServerClock
  signal: AbortSignal
}

/**
 * Exchanges the enrollment token or key for an identity. Retries until the server decides. Throws `FatalError` if the
 * server rejects the enrollment or is not a platform.
 */
export async function enroll(enrollment: Enrollment): Promise<Identity> {
  const { server, token, nodes, clock, signal } = enrollment
  const response = await send(server, createRequest(enrollment), signal)
  const { body } = response
  if (response.status >= 400) throw rejectionError(server, token, response)
  if (response.status !== 201 || !isEnrollResponse(body, nodes.length))
    throw new FatalError(
      'failed',
      `${server} is not a platform. Check --server, and whether this network requires a sign-in.`,
    )
  clock.observe(body.serverTime)
  return {
    server,
    tokenId: token.id,
    relayId: body.relayId,
    clusterId: body.clusterId,
    heartbeatIntervalSeconds: body.heartbeatIntervalSeconds || 30,
    statementKeys: body.keys.keys,
    nodes: nodes.map((config, index) => ({ id: body.nodes[index]!.id, config })),
  }
}

function send(server: string, request: EnrollRequest, signal: AbortSignal): Promise<RelayResponse> {
  const headers = { 'content-type': 'application/json', 'user-agent': `platform-relay/${relayVersion}` }
  const body = JSON.stringify(request)
  return retryUntilDecision(
    signal,
    async () => {
      const response = await post({ url: `${server}/api/v1/relay/enroll`, headers, body, timeoutMs: 30_000, signal })
      if (codeOf(response) !== 'limit_reached') return response
      throw new RetryableError('the organisation has its maximum number of clusters; remove some or raise the quota')
    },
    ({ message }) => warn(`Cannot enroll at ${server}: ${message}. Retrying.`),
  )
}

function createRequest({ token, displayName, nodes, stateFolder }: Enrollment): EnrollRequest {
  return {
    ...(token.isKey ? { enrollmentKey: token.text } : { enrollmentToken: token.text }),
    publicKey: publicKeyOf(keyFor(stateFolder, token.id)),
    displayName,
    hostname: hostname(),
    platform: `${process.platform} ${process.arch}`,
    relayVersion,
    nodes: nodes.map(({ name }) => ({ name })),
  }
}

function publicKeyOf(privateKey: KeyObject): EnrollRequest['publicKey'] {
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' })
  return { kty: 'OKP', crv: 'Ed25519', x: x! }
}

function rejectionError(server: string, { isKey }: EnrollmentToken, response: RelayResponse): FatalError {
  const code = codeOf(response)
  if (response.status !== 401 && response.status !== 409)
    return new FatalError('failed', `${server} rejected the enrollment: ${code}.`)
  return new FatalError(
    'enrollmentRejected',
    isKey
      ? `The server rejected the enrollment key (${code}). Create another one and start the relay with it.`
      : `The server rejected the enrollment token (${code}). Issue a new one for the cluster and start the relay with it.`,
  )
}

function isEnrollResponse(body: JsonObject, nodeCount: number): body is EnrollResponse {
  const { relayId, clusterId, keys, nodes } = body
  if (typeof relayId !== 'string' || typeof clusterId !== 'string') return false
  if (!isJsonObject(keys) || !Array.isArray(keys.keys) || keys.keys.length === 0) return false
  return Array.isArray(nodes) && nodes.length === nodeCount && nodes.every((node) => typeof node?.id === 'string')
}
