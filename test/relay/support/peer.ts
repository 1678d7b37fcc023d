import { Completion, EnrollRequest, Goodbye, Heartbeat, OutputReport } from '@platform/contract/relay'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { RequestGuard } from './authorization.ts'
import { newId, PeerJob, type Refusal } from './peer-job.ts'

export type CallName = 'enroll' | 'heartbeat' | 'claim' | 'output' | 'complete' | 'goodbye'
type Answer = { status: number; body?: object; headers?: Record<string, string> }
type Call = {
  name: CallName
  request: IncomingMessage
  response: ServerResponse
  body: Buffer
  job: PeerJob | undefined
}

/** The platform's side of the relay protocol, in memory, with the faults that a network has. */
export class Peer {
  readonly guard = new RequestGuard()
  readonly clusterId = newId('clus')
  readonly signer = { kid: 'statement-key', ...generateKeyPairSync('ed25519') }
  readonly jobs: PeerJob[] = []
  readonly beats: Heartbeat[] = []
  readonly goodbyes: string[] = []
  /** Every call that arrived, in order, refused ones included. */
  readonly calls: CallName[] = []
  readonly refusals: string[] = []
  readonly enrolments: EnrollRequest[] = []
  heartbeatIntervalSeconds = 30
  /** Whether beats are held until there is work. */
  holdsBeats = true
  /** Calls that are carried out, but whose answer is lost. */
  readonly lostAnswers = new Set<CallName>()
  /** Calls that are answered with 503. */
  readonly failing = new Set<CallName>()
  relayId = ''
  nodeIds: string[] = []

  readonly #changes = new EventEmitter().setMaxListeners(100)
  readonly #tokens = new Map<string, { usedWith?: string }>()
  readonly #server = createServer((request, response) => void this.#serve(request, response))
  #enrolled: object | undefined

  static async start(): Promise<Peer> {
    const peer = new Peer()
    peer.#server.listen(0, '127.0.0.1')
    await once(peer.#server, 'listening')
    return peer
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo
    return `http://127.0.0.1:${port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  issueToken(): string {
    const token = `${newId('enroll')}.${randomUUID()}`
    this.#tokens.set(token, {})
    return token
  }

  /** Queues a job; the relay learns of it at its next beat, or in the one that is held. */
  addJob(payload: Record<string, unknown>, id = newId('job')): PeerJob {
    const job = new PeerJob({ id, clusterId: this.clusterId, payload, signer: this.signer })
    this.jobs.push(job)
    this.changed()
    return job
  }

  /** Runs a script to its reported end. */
  async run(payload: Record<string, unknown>): Promise<PeerJob> {
    const job = this.addJob(payload)
    await this.until(() => job.completion !== undefined)
    return job
  }

  /** Wakes whoever waits for a change of what this peer holds. */
  changed(): void {
    this.#changes.emit('change')
  }

  /** Returns when the condition holds; it is looked at after every call. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await once(this.#changes, 'change')
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = await this.#read(request, response)
    // An answer that is held back keeps the headers that it had when that began.
    const date = new Date(Date.now() + this.guard.skewSeconds * 1000).toUTCString()
    this.calls.push(call.name)
    const answer = this.failing.has(call.name) ? { status: 503 } : await this.#answer(call)
    this.changed()
    if (this.lostAnswers.delete(call.name)) return void request.socket.destroy()
    const body = answer.status === 204 ? '' : JSON.stringify(answer.body ?? { error: 'starting' })
    response.writeHead(answer.status, { 'content-type': 'application/json', date, ...answer.headers }).end(body)
  }

  async #read(request: IncomingMessage, response: ServerResponse): Promise<Call> {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const path = /^\/api\/v1\/relay\/(?:jobs\/([^/]+)\/)?(\w+)$/.exec(request.url ?? '')
    const job = this.jobs.find(({ id }) => id === path?.[1])
    return { name: path?.[2] as CallName, request, response, body: Buffer.concat(chunks), job }
  }

  async #answer(call: Call): Promise<Answer> {
    if (call.name === 'enroll') return this.#enroll(EnrollRequest.parse(parse(call)))
    const checked = this.guard.check(call.request.headers.authorization, call.request.url ?? '', call.body)
    if ('refusal' in checked) {
      this.refusals.push(checked.refusal)
      return { status: 401, body: { error: 'unauthenticated' } }
    }
    return call.name === 'heartbeat' ? this.#beat(call) : this.#act(call)
  }

  #act(call: Call): Answer {
    if (call.name === 'goodbye') {
      this.goodbyes.push(Goodbye.parse(parse(call)).reason)
      return { status: 204 }
    }
    const { job } = call
    if (!job) return { status: 404, body: { error: 'job_not_found' } }
    if (call.name === 'claim') return answerOf(job.take(call.request.headers['idempotency-key'] as string | undefined))
    if (call.name === 'output') return answerOf(job.append(OutputReport.parse(parse(call))))
    return answerOf(job.complete(Completion.parse(parse(call))))
  }

  #enroll(request: EnrollRequest): Answer {
    this.enrolments.push(request)
    const token = this.#tokens.get(request.enrollmentToken)
    if (!token) return { status: 401, body: { error: 'enrollment_token_invalid' } }
    if (token.usedWith && token.usedWith !== request.publicKey.x) {
      return { status: 409, body: { error: 'enrollment_token_used' } }
    }
    if (!token.usedWith) this.#adopt(request)
    token.usedWith = request.publicKey.x
    return { status: 201, body: { ...this.#enrolled, serverTime: this.#now() } }
  }

  #adopt({ publicKey, nodes }: EnrollRequest): void {
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

  /** Holds the answer back until there is work, as `Prefer: wait` asks. */
  async #beat(call: Call): Promise<Answer> {
    const beat = Heartbeat.parse(parse(call))
    this.beats.push(beat)
    this.changed()
    const askedSeconds = Number(/^wait=(\d+)$/.exec(String(call.request.headers.prefer))?.[1] ?? 0)
    const waitSeconds = this.holdsBeats ? askedSeconds : 0
    const over = AbortSignal.timeout(waitSeconds * 1000)
    call.response.once('close', () => this.changed())
    const isDue = () => this.#workFor(beat).length > 0 || this.#cancelled(beat).length > 0
    while (!isDue() && !over.aborted && !call.request.socket.destroyed) {
      await once(this.#changes, 'change', { signal: over }).catch(() => {})
    }
    return {
      status: 200,
      headers: waitSeconds > 0 ? { 'preference-applied': `wait=${waitSeconds}` } : {},
      body: {
        heartbeatIntervalSeconds: this.heartbeatIntervalSeconds,
        jobs: this.#workFor(beat),
        cancel: this.#cancelled(beat),
        serverTime: this.#now(),
      },
    }
  }

  #workFor({ freeSlots }: Heartbeat): string[] {
    const offered = this.jobs.filter(({ isOffered }) => isOffered)
    return offered.slice(0, freeSlots).map(({ id }) => id)
  }

  #cancelled({ running }: Heartbeat): string[] {
    return this.jobs.filter(({ id, isCancelled }) => isCancelled && running.includes(id)).map(({ id }) => id)
  }

  #now(): string {
    return new Date(Date.now() + this.guard.skewSeconds * 1000).toISOString()
  }
}

function parse({ body }: Call): unknown {
  return JSON.parse(body.toString())
}

function answerOf(result: object | Refusal): Answer {
  return 'error' in result ? { status: result.status, body: { error: result.error } } : { status: 200, body: result }
}
