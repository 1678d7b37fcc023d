import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CloudEvent } from '@platform/contract/event'
import type { Deployment } from '@platform/core/modules/deployment'
import { callInstance } from '@platform/worker/runtimes/instance-request'
import {
  type DeploymentSpec,
  type DeploymentStatus,
  type ModuleResponse,
  type ModuleRequest,
  type ModuleRuntime,
  RuntimeError,
  type RequestLimits,
} from '@platform/worker/runtimes/port'
import { environmentNames } from '@platform/modules/protocol'
import { onTestFinished } from 'vitest'
import { Program } from './program.ts'
import { isListening, waitFor } from './wait-for.ts'

interface Running {
  deployment: Deployment
  program: Program
  token: string
}

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

/** Returns the lines that consist of one word: the modules `calm` and `hooks` print the names of their hooks. */
export const hooksIn = (output: string): string[] => output.match(/^\w+$/gm) ?? []

/**
 * A minimal runtime: each deployment is a Node process on a Unix socket, without restarts. The repository of a spec is
 * the path of the module's main file, with its arguments.
 */
export class ModuleProcesses implements ModuleRuntime, AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'modules-'))
  readonly #running = new Map<string, Running>()

  async deploy(spec: DeploymentSpec): Promise<Deployment> {
    const { id } = spec
    if (!this.#running.has(id)) this.#running.set(id, this.#start(spec))
    const { deployment, program } = this.#find(id)
    await waitFor(`${id} listens`, async () => {
      if (program.hasEnded) throw new RuntimeError('init_failed', `It exited at start:\n${program.text}`)
      return isListening({ path: deployment.handle })
    })
    return deployment
  }

  async request({ id, handle }: Deployment, request: ModuleRequest, limits: RequestLimits): Promise<ModuleResponse> {
    const runningModule = this.#running.get(id)
    if (!runningModule || runningModule.program.hasEnded) throw new RuntimeError('unavailable', 'It does not run.')
    return callInstance(handle, runningModule.token, request, limits)
  }

  async remove({ id }: Deployment, graceMs: number): Promise<void> {
    const program = this.#running.get(id)?.program
    if (!program) return
    const timer = setTimeout(() => program.signal('SIGKILL'), graceMs)
    program.signal('SIGTERM')
    await program.ended
    clearTimeout(timer)
    this.#running.delete(id)
  }

  async list(): Promise<DeploymentStatus[]> {
    return [...this.#running.values()].map(({ deployment, program }) => ({
      deployment,
      state: program.hasEnded ? 'failed' : 'running',
      crashes: 0,
    }))
  }

  token = ({ id }: Deployment): string => this.#find(id).token

  output = ({ id }: Deployment): string => this.#find(id).program.text

  hooks = (deployment: Deployment): string[] => hooksIn(this.output(deployment))

  lines(deployment: Deployment): Record<string, any>[] {
    const lines = this.output(deployment).split('\n')
    return lines.filter((line) => line.startsWith('{') && line.endsWith('}')).map((line) => JSON.parse(line))
  }

  end(deployment: Deployment, signal: NodeJS.Signals): Program['ended'] {
    this.signal(deployment, signal)
    return this.ended(deployment)
  }

  signal = ({ id }: Deployment, signal: NodeJS.Signals): void => this.#find(id).program.signal(signal)

  ended = ({ id }: Deployment): Program['ended'] => this.#find(id).program.ended

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ program }) => program.kill()))
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #find(id: string): Running {
    const runningModule = this.#running.get(id)
    if (!runningModule) throw new Error(`Deployment ${id} does not exist.`)
    return runningModule
  }

  #start({ id, moduleId, version, repository, digest, organisationId, startsItself }: DeploymentSpec): Running {
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
    const program = new Program(process.execPath, repository.split(' '), { cwd: process.cwd(), env })
    const deployment = { runtime: 'process', isolation: 'none', id, moduleId, version, digest, handle } as const
    return { deployment, program, token }
  }
}

export function moduleProcesses(): ModuleProcesses {
  const runtime = new ModuleProcesses()
  onTestFinished(() => runtime[Symbol.asyncDispose]())
  return runtime
}
