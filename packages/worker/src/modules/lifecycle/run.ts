import { setTimeout as delay } from 'node:timers/promises'
import type { ModuleManifest } from '@platform/contract/manifest'
import type { ModuleErrorCode } from '@platform/contract/module'
import type { Deployment } from '@platform/core/modules/deployment'
import type { Description, PublishedEvent } from '@platform/modules/protocol'
import type { ModuleRuntime } from '../../runtimes/port.ts'
import { callControl, type ControlResponse, sanitize } from './control-client.ts'
import { InstanceDescription, logSlotWarning, warningsOf } from './description.ts'
import { probe } from './probe.ts'

export interface Candidate {
  deployment: Deployment
  manifest: ModuleManifest
}

export type LoadPhase = 'configure' | 'start' | 'probe'

export interface LifecycleResult {
  moduleId: string
  outcome: 'Running' | 'Failed'
  error?: { code: ModuleErrorCode; message: string }
  warnings: string[]
  subscriptions: string[]
  /** Events that the module published in responses to hooks and probes. */
  published: PublishedEvent[]
}

export interface LifecycleOptions {
  hookMs?: number
  /** Time limit for the module to become healthy after its start. */
  probeTimeoutMs?: number
  /** Called before each phase of each module. `runLifecycle` throws its errors once no other work is in progress. */
  onPhase?: (moduleId: string, phase: LoadPhase) => void | Promise<void>
}

const healthPauseMs = 250

/**
 * Runs the hooks of modules. No module starts before the configuration of all modules has ended, successfully or not.
 * Then each module is probed until it is healthy or its time limit is reached. The failure of a module does not affect
 * the others, and is returned, not thrown. Does not stop failed modules: call `shutDown`. A repeated call succeeds for
 * a running module.
 */
export async function runLifecycle(
  runtime: ModuleRuntime,
  candidates: readonly Candidate[],
  options: LifecycleOptions = {},
): Promise<LifecycleResult[]> {
  const starts = candidates.map((candidate) => new ModuleStart(runtime, candidate, options))
  await settleAll(starts.map((start) => start.configure()))
  await settleAll(starts.map((start) => start.start()))
  return starts.map(({ result }) => result)
}

/** Waits until all tasks have ended before it throws the first error. */
async function settleAll(tasks: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(tasks)
  await Promise.all(tasks)
}

class ModuleStart {
  readonly result: LifecycleResult
  readonly #runtime: ModuleRuntime
  readonly #candidate: Candidate
  readonly #options: LifecycleOptions
  readonly #hookMs: number

  constructor(runtime: ModuleRuntime, candidate: Candidate, options: LifecycleOptions) {
    this.#runtime = runtime
    this.#candidate = candidate
    this.#options = options
    this.#hookMs = options.hookMs ?? 30_000
    const moduleId = candidate.manifest.metadata.id
    this.result = { moduleId, outcome: 'Running', warnings: [], subscriptions: [], published: [] }
  }

  async configure(): Promise<void> {
    await this.#startPhase('configure')
    const { manifest } = this.#candidate
    const description = await this.#call('GET', '/describe')
    if (!description.isDone) return this.#fail('PLAT-MOD-5004', describeFailure(description))
    const { id } = description.body
    if (id !== manifest.metadata.id) {
      return this.#fail(
        'PLAT-MOD-5001',
        `The code has the id ${sanitize(id)}, but the manifest has ${manifest.metadata.id}.`,
      )
    }
    this.result.warnings.push(...warningsOf(description.body, manifest))
    logSlotWarning(description.body, manifest)
    const configureResponse = await this.#call('POST', '/configure')
    if (!configureResponse.isDone) return this.#fail('PLAT-MOD-5004', configureResponse.message)
    this.result.subscriptions.push(...configureResponse.body.subscriptions)
  }

  async start(): Promise<void> {
    if (this.result.outcome === 'Failed') return
    await this.#startPhase('start')
    const startResponse = await this.#call('POST', '/start')
    if (!startResponse.isDone) return this.#fail('PLAT-MOD-5005', startResponse.message)
    await this.#startPhase('probe')
    if (!(await this.#becomesHealthy())) {
      const { healthEndpoint } = this.#candidate.manifest.spec
      this.#fail('PLAT-MOD-5006', `GET ${healthEndpoint} did not respond with 2xx in time.`)
    }
  }

  async #becomesHealthy(): Promise<boolean> {
    const { deployment, manifest } = this.#candidate
    const untilMs = performance.now() + (this.#options.probeTimeoutMs ?? 10_000)
    for (;;) {
      const { isHealthy, published } = await probe(this.#runtime, deployment, manifest)
      this.result.published.push(...published)
      if (isHealthy || performance.now() > untilMs) return isHealthy
      await delay(healthPauseMs)
    }
  }

  async #startPhase(phase: LoadPhase): Promise<void> {
    await this.#options.onPhase?.(this.result.moduleId, phase)
  }

  async #call(method: 'GET' | 'POST', path: string): Promise<ControlResponse<Description>> {
    const request = { method, path, limitMs: this.#hookMs, schema: InstanceDescription }
    const response = await callControl(this.#runtime, this.#candidate.deployment, request)
    this.result.published.push(...response.published)
    return response
  }

  #fail(code: ModuleErrorCode, message: string): void {
    this.result.outcome = 'Failed'
    this.result.error = { code, message }
  }
}

/** A module without the SDK responds with 404. It has no hooks, so the platform could not stop it cleanly. */
const describeFailure = ({ status, message }: { status?: number; message: string }): string =>
  status === 404
    ? 'The module does not implement the control protocol of the platform: its main file must end with serve(…) of @platform/modules.'
    : message

/**
 * Whether the runtime lists the deployment, healthy or not; false if the runtime is unreachable. If the deployment is
 * missing, the module did not cause the failure: the deployment was removed, or the platform is stopping.
 */
export async function deploymentExists(runtime: ModuleRuntime, { id }: Deployment): Promise<boolean> {
  const statuses = await runtime.list().catch(() => [])
  return statuses.some(({ deployment }) => deployment.id === id)
}
