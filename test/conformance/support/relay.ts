import { createHash, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { type ApiResponse, expectStatus } from './answer.ts'
import type { Client } from './client.ts'
import { openMqtt } from '../../support/mqtt-client.ts'
import { type KeySet, signJws } from './jws.ts'

export function newRelayKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const { kty, crv, x } = publicKey.export({ format: 'jwk' })
  return { privateKey, publicKey: { kty, crv, x } }
}

export type RelayKey = ReturnType<typeof newRelayKey>

export const requestEnrollment = (
  client: Client,
  enrollmentToken: string,
  { publicKey }: RelayKey,
  nodes: readonly string[] = ['node-1'],
): Promise<ApiResponse> =>
  client.post('/api/v1/relay/enroll', {
    enrollmentToken,
    publicKey,
    displayName: 'conformance',
    hostname: 'conformance',
    platform: 'linux',
    relayVersion: '1.0.0',
    nodes: nodes.map((name) => ({ name })),
  })

export function tokenClaims(path: string, body: string | Uint8Array) {
  const iat = Math.floor(Date.now() / 1000)
  const bodySha256 = createHash('sha256').update(body).digest('base64url')
  return { aud: 'platform-relay', iat, exp: iat + 60, jti: randomUUID(), path, bodySha256 }
}

interface HeartbeatState {
  nodes?: object[]
  running?: string[]
  freeSlots?: number
  claimKey?: string
  instanceId?: string
  channel?: 'open' | 'closed'
  factsHash?: string
  facts?: object
  update?: object
}

export class Relay {
  readonly client: Client
  readonly relayId: string
  readonly clusterId: string
  readonly nodes: readonly { id: string; name: string }[]
  readonly keys: KeySet
  readonly #key: KeyObject

  constructor(client: Client, key: RelayKey, enrolled: any) {
    this.#key = key.privateKey
    this.relayId = enrolled.relayId
    this.clusterId = enrolled.clusterId
    this.nodes = enrolled.nodes
    this.keys = enrolled.keys
    this.client = client.as((path, body) => `Relay ${this.sign(tokenClaims(path, body))}`)
  }

  sign(claims: object): string {
    return signJws({ typ: 'relay+jwt', kid: this.relayId }, claims, this.#key)
  }

  /** Sends a heartbeat, by default with all nodes Online. */
  heartbeat(state: HeartbeatState = {}): Promise<ApiResponse> {
    const nodes = this.nodes.map(({ id }) => ({ id, status: 'Online' }))
    const body = { nodes, running: [], freeSlots: 4, ...state }
    return this.client.post('/api/v1/relay/heartbeat', body)
  }

  /** Opens the control channel and subscribes to its topic. Returns undefined if the platform offers no channel. */
  async openChannel() {
    const state = { instanceId: randomUUID(), channel: 'closed' } as const
    const { channel } = expectStatus(await this.heartbeat(state), 200)
    if (channel === undefined) return undefined
    const { bodySha256: _, ...claims } = tokenClaims(`mqtt:${channel.clientId}`, '')
    const mqtt = await openMqtt(new URL(channel.url, this.client.baseUrl.replace(/^http/, 'ws')).href)
    const code = await mqtt.connect(channel.clientId, this.sign(claims), { keepalive: channel.keepAliveSeconds })
    return { mqtt, code, granted: await mqtt.subscribe(channel.topic), topic: channel.topic }
  }

  /** Claims a job. The same key repeats the claim. */
  async claim(jobId: string, claimKey: string = randomUUID()): Promise<any> {
    return expectStatus(await this.#call(jobId, 'claim', undefined, { 'idempotency-key': claimKey }), 200)
  }

  output(jobId: string, report: { leaseId: string; seq: number; data: string; stream?: string }): Promise<ApiResponse> {
    return this.#call(jobId, 'output', { nodeId: this.nodes[0]?.id, stream: 'stdout', ...report })
  }

  complete(
    jobId: string,
    leaseId: string,
    outcomeOrExitCode: number | string,
    output?: { seq: number; chunks: object[] },
  ): Promise<ApiResponse> {
    return this.#call(jobId, 'complete', { ...this.#completion(leaseId, outcomeOrExitCode), output })
  }

  completeAll(jobs: readonly { jobId: string; leaseId: string }[], exitCode: number): Promise<ApiResponse> {
    const completions = jobs.map(({ jobId, leaseId }) => ({ jobId, ...this.#completion(leaseId, exitCode) }))
    return this.client.post('/api/v1/relay/completions', { completions })
  }

  #completion(leaseId: string, outcomeOrExitCode: number | string) {
    const exitCode = typeof outcomeOrExitCode === 'number' ? outcomeOrExitCode : null
    const outcome = typeof outcomeOrExitCode === 'number' ? 'exited' : outcomeOrExitCode
    return { leaseId, outcome, exitCode, nodes: this.nodes.map(({ id }) => ({ nodeId: id, exitCode })) }
  }

  goodbye(): Promise<ApiResponse> {
    return this.client.post('/api/v1/relay/goodbye', { reason: 'conformance' })
  }

  #call(jobId: string, action: string, body?: object, headers?: Record<string, string>): Promise<ApiResponse> {
    return this.client.post(`/api/v1/relay/jobs/${jobId}/${action}`, body, headers)
  }
}
