import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomUUID, sign, verify } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Server } from 'node:net'
import { listen, type ListeningServer } from '../../support/http-server.ts'
import { FakeBroker } from './fake-broker.ts'
import {
  type Channel,
  type Claim,
  Completion,
  type CompletionResponse,
  type CompletionResult,
  CompletionsRequest,
  EnrollRequest,
  Goodbye,
  Heartbeat,
  type HeartbeatResponse,
  type JobCompletion,
  type OutputPiece,
  OutputReport,
} from '@platform/contract/relay'

export type CallName = 'enroll' | 'heartbeat' | 'claim' | 'output' | 'complete' | 'completions' | 'goodbye'

export type Reply = { status: number; body?: object; headers?: Record<string, string> }

type Call = {
  name: CallName
  request: IncomingMessage
  response: ServerResponse
  body: Buffer
  job: FakeJob | undefined
}

export class FakePlatform {
  readonly guard = new RequestGuard()
  readonly clusterId = newId('clus')
  signer = { kid: 'statement-key', ...generateKeyPairSync('ed25519') }
  /** Statement keys that a heartbeat receives if it does not name the current key of `signer`. */
  statementKeys: string[] | undefined
  readonly jobs: FakeJob[] = []
  readonly heartbeats: Heartbeat[] = []
  readonly goodbyes: string[] = []
  readonly calls: CallName[] = []
  readonly rejections: string[] = []
  readonly enrollments: EnrollRequest[] = []
  heartbeatIntervalSeconds = 30
  hasChannel = true
  channelUrl = '/channel'
  keepAliveSeconds = 40
  /** IP addresses that have sent requests or opened channels. */
  readonly addresses = new Set<string>()
  /** If false, heartbeats do not claim jobs, as in an earlier version of the platform. */
  claimsWithHeartbeats = true
  /** Number of further enrollments that exceed the quota of clusters and are rejected. */
  enrollmentsOverLimit = 0
  /** Calls whose next response is lost. The call is performed. A heartbeat that claims jobs counts as `claim`. */
  readonly lostResponses = new Set<CallName>()
  /** Calls whose responses wait for the promise. */
  readonly held = new Map<CallName, Promise<void>>()
  /** Responses of another program to the next request of a call. The call is not performed. */
  readonly foreignReplies = new Map<CallName, Reply>()
  /** Calls that fail with 503. */
  readonly failing = new Set<CallName>()
  update: HeartbeatResponse['update']
  /** Content of the file at `/relay/relay.mjs`. */
  program = ''
  /** The relay version of each heartbeat, including failed heartbeats. */
  readonly versions: string[] = []
  /** From the first heartbeat of this version on, all heartbeats fail until `failing` is cleared. */
  fatalVersion: string | undefined
  relayId = ''
  nodeIds: string[] = []

  readonly #changes = new EventEmitter().setMaxListeners(100)
  readonly #tokens = new Map<string, { usedWith?: string }>()
  readonly #server = createServer((request, response) => void this.#serve(request, response))
  readonly broker = new FakeBroker(this.#server, (clientId, password) => {
    const checkResult = this.guard.check(`Relay ${password}`, `mqtt:${clientId}`, undefined)
    return 'relayId' in checkResult && clientId.startsWith(`test-${checkResult.relayId}-`)
  })
  #listening: ListeningServer | undefined
  #enrolled: object | undefined
  collectsFacts = false
  readonly facts: NonNullable<Heartbeat['facts']>[] = []
  #factsHash: string | undefined

  static async start(openPort?: Server): Promise<FakePlatform> {
    const platform = new FakePlatform()
    platform.#server.on('connection', ({ remoteAddress }) => void platform.addresses.add(String(remoteAddress)))
    platform.#listening = await listen(platform.#server, openPort)
    return platform
  }

  get url(): string {
    return this.#listening?.url ?? ''
  }

  async close(): Promise<void> {
    this.broker.reset()
    await this.#listening?.[Symbol.asyncDispose]()
  }

  issueToken(): string {
    const token = `${newId('enroll')}.${randomUUID()}`
    this.#tokens.set(token, {})
    return token
  }

  addJob(payload: Record<string, unknown>, id = newId('job')): FakeJob {
    const job = new FakeJob({ id, clusterId: this.clusterId, payload, signer: this.signer })
    this.jobs.push(job)
    this.notifyChange()
    return job
  }

  async run(payload: Record<string, unknown>): Promise<FakeJob> {
    const job = this.addJob(payload)
    await this.until(() => job.completion !== undefined)
    return job
  }

  /** Wakes the relay, and the test that waits in `until`. */
  notifyChange(): void {
    this.broker.wake()
    this.#emit()
  }

  #emit(): void {
    this.#changes.emit('change')
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await once(this.#changes, 'change')
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/health/live')
      return void response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}')
    if (request.url === '/relay/relay.mjs') return void response.writeHead(200).end(this.program)
    const call = await this.#read(request, response)
    if (call.name === 'heartbeat') {
      const [, version = ''] = (request.headers['user-agent'] ?? '').split('/')
      this.versions.push(version)
      if (version === this.fatalVersion) this.failing.add('heartbeat')
    }
    const foreignReply = this.foreignReplies.get(call.name)
    if (foreignReply && this.foreignReplies.delete(call.name))
      return void response.writeHead(foreignReply.status).end(JSON.stringify(foreignReply.body))
    const date = new Date(Date.now() + this.guard.skewSeconds * 1000).toUTCString()
    this.calls.push(call.name)
    const reply = this.failing.has(call.name) ? { status: 503 } : await this.#respond(call)
    this.#emit()
    const hasClaims = reply.body !== undefined && 'claims' in reply.body && (reply.body.claims as []).length > 0
    if (this.lostResponses.delete(hasClaims ? 'claim' : call.name)) return void request.socket.destroy()
    await this.held.get(call.name)
    const error = reply.status >= 400 && { error: 'starting', message: 'Try again.', traceId: randomUUID() }
    const body = reply.status === 204 ? '' : JSON.stringify({ ...error, ...reply.body })
    response.writeHead(reply.status, { 'content-type': 'application/json', date, ...reply.headers }).end(body)
  }

  async #read(request: IncomingMessage, response: ServerResponse): Promise<Call> {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const path = /^\/api\/v1\/relay\/(?:jobs\/([^/]+)\/)?(\w+)$/.exec(request.url ?? '')
    const job = this.jobs.find(({ id }) => id === path?.[1])
    return { name: path?.[2] as CallName, request, response, body: Buffer.concat(chunks), job }
  }

  async #respond(call: Call): Promise<Reply> {
    if (call.name === 'enroll') return this.#enroll(EnrollRequest.parse(parse(call)))
    const checkResult = this.guard.check(call.request.headers.authorization, call.request.url ?? '', call.body)
    if ('rejection' in checkResult) {
      this.rejections.push(checkResult.rejection)
      return { status: 401, body: { error: checkResult.rejection === 'revoked' ? 'relay_revoked' : 'unauthenticated' } }
    }
    return call.name === 'heartbeat' ? this.#heartbeat(call) : this.#act(call)
  }

  #act(call: Call): Reply {
    if (call.name === 'goodbye') {
      this.goodbyes.push(Goodbye.parse(parse(call)).reason)
      return { status: 204 }
    }
    if (call.name === 'completions') {
      const { completions } = CompletionsRequest.parse(parse(call))
      return { status: 200, body: { results: completions.map((report) => this.#completeOne(report)) } }
    }
    const { job } = call
    if (!job) return { status: 404, body: { error: 'job_not_found' } }
    if (call.name === 'claim') return replyOf(job.take(call.request.headers['idempotency-key'] as string | undefined))
    if (call.name === 'output') return replyOf(job.append(OutputReport.parse(parse(call))))
    return replyOf(job.complete(Completion.parse(parse(call))))
  }

  #completeOne({ jobId, ...report }: JobCompletion): CompletionResult {
    const result = this.jobs.find(({ id }) => id === jobId)?.complete(report)
    const { error } = { error: 'job_not_found', ...result }
    return result !== undefined && 'jobId' in result ? result : { jobId, error: error as CompletionResult['error'] }
  }

  #enroll(request: EnrollRequest): Reply {
    this.enrollments.push(request)
    const token = this.#tokens.get(request.enrollmentToken ?? request.enrollmentKey ?? '')
    if (this.enrollmentsOverLimit-- > 0) return { status: 409, body: { error: 'limit_reached' } }
    if (!token) return { status: 401, body: { error: 'enrollment_token_invalid' } }
    if (token.usedWith && token.usedWith !== request.publicKey.x) {
      return { status: 409, body: { error: 'enrollment_token_used' } }
    }
    if (!token.usedWith) this.#createRelay(request)
    token.usedWith = request.publicKey.x
    return { status: 201, body: { ...this.#enrolled, serverTime: this.#now() } }
  }

  #createRelay({ publicKey, nodes }: EnrollRequest): void {
    this.guard.revoke(this.relayId)
    this.relayId = newId('relay')
    this.guard.trust(this.relayId, publicKey)
    this.nodeIds = nodes.map(() => newId('node'))
    const { x } = this.signer.publicKey.export({ format: 'jwk' })
    const key = { kty: 'OKP', crv: 'Ed25519', x, kid: this.signer.kid, alg: 'EdDSA', use: 'sig' }
    this.#enrolled = {
      relayId: this.relayId,
      clusterId: this.clusterId,
      heartbeatIntervalSeconds: this.heartbeatIntervalSeconds,
      keys: { keys: [key] },
      nodes: nodes.map(({ name }, index) => ({ id: this.nodeIds[index], name })),
    }
  }

  #heartbeat(call: Call): Reply {
    const heartbeat = Heartbeat.parse(parse(call))
    this.heartbeats.push(heartbeat)
    return {
      status: 200,
      body: {
        heartbeatIntervalSeconds: this.heartbeatIntervalSeconds,
        ...(this.claimsWithHeartbeats ? this.#claimsFor(heartbeat) : { jobs: this.#jobsFor(heartbeat) }),
        ...(this.hasChannel && { channel: this.#channelFor(heartbeat) }),
        cancel: this.#cancelledFor(heartbeat),
        ...(this.update && { update: this.update }),
        ...(heartbeat.statementKey !== this.signer.kid && { statementKeys: this.statementKeys }),
        ...this.#factsAnswer(heartbeat),
        serverTime: this.#now(),
      },
    }
  }

  #factsAnswer({ factsHash, facts }: Heartbeat) {
    if (facts !== undefined) this.facts.push(facts)
    if (facts !== undefined) this.#factsHash = factsHash
    return this.collectsFacts && factsHash !== this.#factsHash && { wantsFacts: true }
  }

  #channelFor({ instanceId }: Heartbeat): Channel {
    const clientId = `test-${this.relayId}-${instanceId}`
    return {
      url: this.channelUrl,
      clientId,
      topic: 'test/relay',
      username: '',
      keepAliveSeconds: this.keepAliveSeconds,
    }
  }

  #claimsFor(heartbeat: Heartbeat): { claims: object[]; jobs: string[]; moreJobs: boolean } {
    const { claimKey } = heartbeat
    const earlierClaims = this.jobs.filter(
      (job) => claimKey !== undefined && job.claimKey === claimKey && !job.completion,
    )
    const jobs =
      earlierClaims.length > 0
        ? earlierClaims
        : this.jobs.filter(({ isOffered }) => isOffered).slice(0, heartbeat.freeSlots)
    const claims = jobs.map((job) => ({ jobId: job.id, ...job.take(claimKey) }))
    return { claims, jobs: [], moreJobs: this.jobs.some(({ isOffered }) => isOffered) }
  }

  #jobsFor({ freeSlots }: Heartbeat): string[] {
    const offeredJobs = this.jobs.filter(({ isOffered }) => isOffered)
    return offeredJobs.slice(0, freeSlots).map(({ id }) => id)
  }

  #cancelledFor({ running }: Heartbeat): string[] {
    return this.jobs.filter(({ id, isCancelled }) => isCancelled && running.includes(id)).map(({ id }) => id)
  }

  #now(): string {
    return new Date(Date.now() + this.guard.skewSeconds * 1000).toISOString()
  }
}

function parse({ body }: Call): unknown {
  return JSON.parse(body.toString())
}

function replyOf(result: object | Rejection): Reply {
  return 'error' in result ? { status: result.status, body: { error: result.error } } : { status: 200, body: result }
}

export type Rejection = { status: number; error: string }

export class FakeJob {
  readonly id: string
  readonly payload: Record<string, unknown>
  readonly chunks: OutputPiece[] = []
  outputCalls = 0
  readonly reports: Completion[] = []
  claimCount = 0
  isOffered = true
  isCancelled = false
  isFinished = false
  completion: Completion | undefined
  claim: Claim | undefined
  claimKey: string | undefined

  constructor({
    id,
    clusterId,
    payload,
    signer,
  }: Omit<Statement, 'jobId'> & { id: string; payload: Record<string, unknown>; signer: Signer }) {
    this.id = id
    this.payload = payload
    this.#prepare = () => {
      const statement = signStatement({ jobId: id, clusterId, payload }, signer)
      return { leaseId: newId('lease'), leaseExpiresAt: inOneHour().toISOString(), statement, payload }
    }
  }

  readonly #prepare: () => Claim
  tamper: (claim: Claim) => Claim = (claim) => claim

  take(claimKey: string | undefined): Claim | Rejection {
    if (this.claim && claimKey !== this.claimKey) return { status: 409, error: 'job_not_claimable' }
    if (this.isFinished) return { status: 409, error: 'job_not_claimable' }
    this.claimKey = claimKey
    this.claimCount += 1
    this.isOffered = false
    this.claim ??= this.tamper(this.#prepare())
    return this.claim
  }

  offerAgain(): void {
    this.claim = undefined
    this.completion = undefined
    this.isOffered = true
  }

  append(report: OutputReport): { nextSeq: number; cancel: boolean } | Rejection {
    const rejection = this.#rejectionOf(report.leaseId)
    if (rejection) return rejection
    if (report.seq > this.outputCalls) return { status: 409, error: 'output_out_of_order' }
    if (report.seq === this.outputCalls) {
      this.outputCalls += 1
      this.chunks.push(...(report.chunks ?? []))
    }
    return { nextSeq: this.outputCalls, cancel: this.isCancelled }
  }

  complete(report: Completion): CompletionResponse | Rejection {
    this.reports.push(report)
    const rejection = this.completion ? undefined : this.#rejectionOf(report.leaseId)
    if (rejection) return rejection
    if (report.output && report.output.seq > this.outputCalls) return { status: 409, error: 'output_out_of_order' }
    if (report.output?.seq === this.outputCalls) {
      this.outputCalls += 1
      this.chunks.push(...report.output.chunks)
    }
    this.completion ??= report
    return { jobId: this.id, status: this.completion.outcome === 'exited' ? 'Completed' : 'Failed' }
  }

  get output(): string {
    return this.bytes().toString()
  }

  outputOf(stream: OutputPiece['stream']): string {
    return this.bytes((chunk) => chunk.stream === stream).toString()
  }

  bytes(isIncluded: (chunk: OutputPiece) => boolean = () => true): Buffer {
    return Buffer.concat(
      this.chunks.filter(isIncluded).map(({ data, encoding }) => Buffer.from(data, encoding ?? 'utf8')),
    )
  }

  #rejectionOf(leaseId: string): Rejection | undefined {
    if (leaseId !== this.claim?.leaseId) return { status: 409, error: 'lease_not_held' }
    return this.isFinished ? { status: 409, error: 'job_already_finished' } : undefined
  }
}

export type Signer = { kid: string; privateKey: KeyObject }
type Statement = { jobId: string; clusterId: string; payload: unknown; exp?: number }

export function signStatement(statement: Statement, signer: Signer): string {
  const { jobId, clusterId, payload, exp = inOneHour().getTime() / 1000 } = statement
  const payloadSha256 = createHash('sha256').update(JSON.stringify(payload)).digest('hex')
  const header = { alg: 'EdDSA', typ: 'job-statement+jws', kid: signer.kid }
  const signingInput = [header, { jobId, clusterId, payloadSha256, exp }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${signingInput}.${sign(null, Buffer.from(signingInput), signer.privateKey).toString('base64url')}`
}

export function newId(prefix: string): string {
  return `${prefix}_${createHash('sha256').update(randomUUID()).digest('hex').slice(0, 26)}`
}

function inOneHour(): Date {
  return new Date(Date.now() + 3_600_000)
}

class RequestGuard {
  readonly #keys = new Map<string, KeyObject>()
  readonly #usedTokenIds = new Set<string>()
  skewSeconds = 0
  rejectsAll = false

  trust(relayId: string, publicKey: { kty: string; crv: string; x: string }): void {
    this.#keys.set(relayId, createPublicKey({ key: publicKey, format: 'jwk' }))
  }

  revoke(relayId: string): void {
    this.#keys.delete(relayId)
  }

  check(
    authorization: string | undefined,
    path: string,
    body: Buffer | undefined,
  ): { relayId: string } | { rejection: string } {
    const [header, claims, signature] = /^Relay (\S+)$/.exec(authorization ?? '')?.[1]?.split('.') ?? []
    if (!header || !claims || !signature) return { rejection: 'no token' }
    const { alg, typ, kid } = decode(header)
    const key = this.#keys.get(String(kid))
    if (this.rejectsAll) return { rejection: 'rejects all' }
    if (alg !== 'EdDSA' || typ !== 'relay+jwt') return { rejection: 'wrong header' }
    if (!key) return { rejection: 'revoked' }
    if (!verify(null, Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'))) {
      return { rejection: 'wrong signature' }
    }
    const rejection = this.#rejectionOf(decode(claims), path, body)
    return rejection === undefined ? { relayId: String(kid) } : { rejection }
  }

  #rejectionOf(claims: Record<string, unknown>, path: string, body: Buffer | undefined): string | undefined {
    const { aud, iat, exp, jti, bodySha256 } = claims
    const now = Date.now() / 1000 + this.skewSeconds
    if (aud !== 'platform-relay') return 'wrong audience'
    if (Number(exp) - Number(iat) > 60) return 'lifetime too long'
    if (!(Number(iat) <= now && now < Number(exp))) return 'not valid now'
    if (claims['path'] !== path) return 'wrong path'
    const expected = body && createHash('sha256').update(body).digest('base64url')
    if (bodySha256 !== expected) return 'wrong body'
    if (this.#usedTokenIds.has(String(jti))) return 'already used'
    this.#usedTokenIds.add(String(jti))
    return undefined
  }
}

function decode(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, 'base64url').toString())
}
