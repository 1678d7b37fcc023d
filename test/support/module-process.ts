import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type CloudEvent } from '@platform/contract/event'
import { type Deployment } from '@platform/core/modules/record'
import {
  type DeploymentSpec,
  type DeploymentStatus,
  type ModuleResponse,
  type ModuleRequest,
  type ModuleRuntime,
  RuntimeError,
  type RequestLimits,
} from '@platform/worker/runtimes/port'
import { environmentNames, tokenHeader } from '@platform/modules/protocol'
import { onTestFinished } from 'vitest'
import { waitFor } from './wait-for.ts'

const projectDir = fileURLToPath(new URL('../..', import.meta.url))

interface Running {
  deployment: Deployment
  child: ChildProcess
  token: string
  output: string
}

/** An event for the subscriptions of `publishes`. */
export const cloudEvent = (id: string): CloudEvent => ({
  specversion: '1.0',
  id,
  source: '/organisations/org_acme',
  type: 'platform.cluster.deleted',
  subject: 'clus_1',
  time: '2026-11-21T09:30:00.000Z',
  datacontenttype: 'application/json',
  data: { clusterId: 'clus_1', name: 'berlin-1' },
})

/** Output lines with a single word: `calm` and `hooks` print the names of their hooks. */
export const hooksIn = (output: string): string[] => output.match(/^\w+$/gm) ?? []

interface ExitStatus {
  exitCode: number | null
  signal: string | null
}

/**
 * A minimal runtime: each deployment is a Node process on a Unix socket, without restarts. The repository of a spec is
 * the path of the module's main file, with its arguments.
 */
export class ModuleProcesses implements ModuleRuntime, AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'modules-'))
  readonly #running = new Map<string, Running>()

  async deploy(spec: DeploymentSpec): Promise<Deployment> {
    const existing = this.#running.get(spec.id)
    if (existing) return existing.deployment
    const running = this.#spawn(spec)
    this.#running.set(spec.id, running)
    await waitFor(`${spec.id} listens`, async () => {
      if (hasEnded(running.child)) throw new RuntimeError('init_failed', `It exited at start:\n${running.output}`)
      return isListening(running.deployment.handle)
    })
    return running.deployment
  }

  request({ id, handle }: Deployment, request: ModuleRequest, limits: RequestLimits): Promise<ModuleResponse> {
    const running = this.#running.get(id)
    if (!running || hasEnded(running.child)) {
      return Promise.reject(new RuntimeError('unavailable', 'It does not run.'))
    }
    return sendRequest(handle, running.token, request, limits)
  }

  async remove({ id }: Deployment, graceMs: number): Promise<void> {
    const running = this.#running.get(id)
    if (!running) return
    const { child } = running
    const timer = setTimeout(() => child.kill('SIGKILL'), graceMs)
    child.kill('SIGTERM')
    await ended(child)
    clearTimeout(timer)
    this.#running.delete(id)
  }

  async list(): Promise<DeploymentStatus[]> {
    return [...this.#running.values()].map(({ deployment, child }) => ({
      deployment,
      state: hasEnded(child) ? 'failed' : 'running',
      crashes: 0,
    }))
  }

  token({ id }: Deployment): string {
    return this.#find(id).token
  }

  output({ id }: Deployment): string {
    return this.#find(id).output
  }

  hooks(deployment: Deployment): string[] {
    return hooksIn(this.output(deployment))
  }

  /** The log lines of a deployment. */
  lines(deployment: Deployment): Record<string, any>[] {
    return this.output(deployment)
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line))
  }

  /** Sends a signal and waits for the process to exit. */
  async end(deployment: Deployment, signal: NodeJS.Signals): Promise<ExitStatus> {
    this.signal(deployment, signal)
    return this.ended(deployment)
  }

  signal({ id }: Deployment, signal: NodeJS.Signals): void {
    this.#find(id).child.kill(signal)
  }

  /** Waits for the process to exit. */
  ended({ id }: Deployment): Promise<ExitStatus> {
    return ended(this.#find(id).child)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const children = [...this.#running.values()].map(({ child }) => child)
    for (const child of children) child.kill('SIGKILL')
    await Promise.all(children.map(ended))
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #find(id: string): Running {
    const running = this.#running.get(id)
    if (!running) throw new Error(`Deployment ${id} does not exist.`)
    return running
  }

  #spawn({ id, moduleId, version, repository, digest, organisationId, startsItself }: DeploymentSpec): Running {
    const handle = join(this.#folder, `${this.#running.size}.sock`)
    const token = randomBytes(32).toString('base64url')
    const env = {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      [environmentNames.socket]: handle,
      [environmentNames.token]: token,
      [environmentNames.organisation]: organisationId,
      [environmentNames.deployment]: id,
      [environmentNames.startsItself]: startsItself ? '1' : '0',
    }
    const child = spawn(process.execPath, repository.split(' '), {
      cwd: projectDir,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const deployment = { runtime: 'process', isolation: 'none', id, moduleId, version, digest, handle } as const
    const running = { deployment, child, token, output: '' }
    const append = (part: Buffer) => (running.output = (running.output + part.toString()).slice(-1_000_000))
    child.stdout.on('data', append)
    child.stderr.on('data', append)
    return running
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

async function ended(child: ChildProcess): Promise<ExitStatus> {
  if (!hasEnded(child)) await once(child, 'exit')
  return { exitCode: child.exitCode, signal: child.signalCode }
}

/** A runtime that is disposed of when the test ends. */
export function moduleProcesses(): ModuleProcesses {
  const runtime = new ModuleProcesses()
  onTestFinished(() => runtime[Symbol.asyncDispose]())
  return runtime
}

const isListening = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path, () => resolve(true))
    socket.on('connect', () => socket.end()).on('error', () => resolve(false))
  })

function sendRequest(
  socketPath: string,
  token: string,
  { method, path, headers, body }: ModuleRequest,
  { timeoutMs, maxBytes }: RequestLimits,
): Promise<ModuleResponse> {
  return new Promise((resolve, reject) => {
    const fail = (...[problem, message]: ConstructorParameters<typeof RuntimeError>) => {
      clearTimeout(timer)
      outgoing.destroy()
      reject(new RuntimeError(problem, message))
    }
    const timer = setTimeout(() => fail('timeout', `No response within ${timeoutMs} ms.`), timeoutMs)
    const options = { socketPath, method, path, headers: { [tokenHeader]: token, ...headers }, agent: false }
    const outgoing = httpRequest(options, (incoming) => {
      const chunks: Buffer[] = []
      let bytes = 0
      incoming.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes > maxBytes) fail('too_large', `The response is larger than ${maxBytes} bytes.`)
      })
      incoming.on('error', (error) => fail('crashed', error.message))
      incoming.on('end', () => {
        clearTimeout(timer)
        const { 'set-cookie': _cookies, ...rest } = incoming.headers
        const entries = Object.entries(rest).map(([name, value]) => [name, String(value)])
        resolve({
          status: incoming.statusCode ?? 0,
          headers: Object.fromEntries(entries),
          body: Buffer.concat(chunks),
        })
      })
    })
    outgoing.on('error', (error) => fail('crashed', error.message)).end(body)
  })
}
