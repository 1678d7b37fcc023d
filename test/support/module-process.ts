import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
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
import { waitFor } from './wait-for.ts'

const projectDir = fileURLToPath(new URL('../..', import.meta.url))

interface Running {
  deployment: Deployment
  child: ChildProcess
  token: string
  output: string
}

/** The main file of a module under test, with what it is told behind it: `hooks throws start`. */
export function fixture(command: string): string {
  const [name, ...words] = command.split(' ')
  return [`test/support/modules/${name}.ts`, ...words].join(' ')
}

/** The lines of one word in an output. */
export const hooksIn = (output: string): string[] => output.match(/^\w+$/gm) ?? []

/**
 * The smallest runtime there is: each deployment is a Node process on a Unix socket, and nothing restarts it. The
 * repository of an assignment is the path of the module's main file, with its arguments.
 */
export class ModuleProcesses implements ModuleRuntime, AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'modules-'))
  readonly #running = new Map<string, Running>()

  async deploy(assignment: DeploymentSpec): Promise<Deployment> {
    const known = this.#running.get(assignment.id)
    if (known) return known.deployment
    const running = this.#spawn(assignment)
    this.#running.set(assignment.id, running)
    await waitFor(`${assignment.id} listens`, async () => {
      if (hasEnded(running.child)) throw new RuntimeError('init_failed', `It ended at once:\n${running.output}`)
      return accepts(running.deployment.handle)
    })
    return running.deployment
  }

  request({ id, handle }: Deployment, request: ModuleRequest, limits: RequestLimits): Promise<ModuleResponse> {
    const running = this.#running.get(id)
    if (!running || hasEnded(running.child)) {
      return Promise.reject(new RuntimeError('unavailable', 'It does not run.'))
    }
    return exchange(handle, running.token, request, limits)
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

  /** What a deployment knows the platform by. */
  token({ id }: Deployment): string {
    return this.#find(id).token
  }

  /** All that a deployment has written so far. */
  output({ id }: Deployment): string {
    return this.#find(id).output
  }

  /** The hooks that a deployment has named on its output, as `calm` and `hooks` do. */
  hooks(deployment: Deployment): string[] {
    return hooksIn(this.output(deployment))
  }

  /** The lines of JSON that a deployment has logged. */
  lines(deployment: Deployment): Record<string, any>[] {
    return this.output(deployment)
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line))
  }

  /** Sends a signal; answers how the process ends. */
  async end(
    deployment: Deployment,
    signal: NodeJS.Signals,
  ): Promise<{ exitCode: number | null; signal: string | null }> {
    this.signal(deployment, signal)
    return this.ended(deployment)
  }

  signal({ id }: Deployment, signal: NodeJS.Signals): void {
    this.#find(id).child.kill(signal)
  }

  /** How the process ends by itself. */
  ended({ id }: Deployment): Promise<{ exitCode: number | null; signal: string | null }> {
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
    if (!running) throw new Error(`There is no deployment ${id}.`)
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
    const keep = (part: Buffer) => (running.output = (running.output + part.toString()).slice(-1_000_000))
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    return running
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

async function ended(child: ChildProcess): Promise<{ exitCode: number | null; signal: string | null }> {
  if (!hasEnded(child)) await once(child, 'exit')
  return { exitCode: child.exitCode, signal: child.signalCode }
}

const accepts = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path, () => resolve(true))
    socket.on('connect', () => socket.end()).on('error', () => resolve(false))
  })

function exchange(
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
    const timer = setTimeout(() => fail('timeout', `No answer within ${timeoutMs} ms.`), timeoutMs)
    const options = { socketPath, method, path, headers: { [tokenHeader]: token, ...headers }, agent: false }
    const outgoing = httpRequest(options, (incoming) => {
      const chunks: Buffer[] = []
      let bytes = 0
      incoming.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes > maxBytes) fail('too_large', `Its answer is larger than ${maxBytes} bytes.`)
      })
      incoming.on('error', (error) => fail('crashed', error.message))
      incoming.on('end', () => {
        clearTimeout(timer)
        const { 'set-cookie': _cookies, ...rest } = incoming.headers
        const answered = Object.entries(rest).map(([name, value]) => [name, String(value)])
        resolve({
          status: incoming.statusCode ?? 0,
          headers: Object.fromEntries(answered),
          body: Buffer.concat(chunks),
        })
      })
    })
    outgoing.on('error', (error) => fail('crashed', error.message)).end(body)
  })
}
