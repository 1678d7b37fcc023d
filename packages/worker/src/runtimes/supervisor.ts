import { setTimeout as delay } from 'node:timers/promises'
import { elapsedMs } from '@platform/core/clock'
import { jitter } from '@platform/core/id'
import { type Instance, type InstancePlan, startInstance } from './instance.ts'
import { type UnpackedImage } from './launcher.ts'
import { type DeploymentStatus } from './port.ts'

const crashWindowMs = 600_000
const maxCrashes = 5
const firstDelayMs = 500
const maxDelayMs = 30_000

/** Exponential backoff with jitter. */
export const restartDelayMs = (crashes: number): number =>
  Math.min(maxDelayMs, firstDelayMs * 2 ** Math.max(0, crashes - 1)) * (0.75 + 0.25 * jitter())

export class CrashCounter {
  #times: number[] = []
  #last: string | undefined

  record(reason: string): void {
    this.#times.push(elapsedMs())
    this.#last = reason
  }

  get recent(): number {
    this.#times = this.#times.filter((time) => time > elapsedMs() - crashWindowMs)
    return this.#times.length
  }

  get last(): string | undefined {
    return this.#last
  }

  /** The supervisor does not restart a deployment that has reached the limit. */
  get hasReachedLimit(): boolean {
    return this.recent >= maxCrashes
  }
}

export interface SupervisorPlan extends Omit<InstancePlan, 'image' | 'protocol'> {
  /** The environment of an instance. The platform may run the hooks of the first one; each later one starts itself. */
  protocolOf: (isFirst: boolean) => InstancePlan['protocol']
  pauseMs: (crashes: number) => number
}

/**
 * Keeps one deployment running: restarts it after a crash with a delay, until it has crashed too often. Does not retry
 * the first start, and returns its error to the caller.
 */
export class Supervisor {
  readonly #plan: SupervisorPlan
  readonly #ending = new AbortController()
  readonly #crashes = new CrashCounter()
  #state: DeploymentStatus['state'] = 'restarting'
  /** The last instance, or the one that is starting. */
  #instance: Promise<Instance> | undefined
  #supervision: Promise<void> | undefined
  #ended: Promise<void> | undefined

  constructor(plan: SupervisorPlan) {
    this.#plan = plan
  }

  async start(image: UnpackedImage): Promise<void> {
    const instance = await this.#startInstance(image, true)
    this.#supervision = this.#supervise(image, instance)
  }

  get status(): Omit<DeploymentStatus, 'deployment'> {
    const { recent, last } = this.#crashes
    return { state: this.#state, crashes: recent, ...(last !== undefined && { lastCrash: last }) }
  }

  /** Ends the deployment permanently, even while it starts. Settles after the cleanup. */
  end(graceMs: number): Promise<void> {
    return (this.#ended ??= this.#end(graceMs))
  }

  async #end(graceMs: number): Promise<void> {
    this.#ending.abort()
    const instance = await this.#instance?.catch(() => undefined)
    await instance?.end(graceMs)
    await this.#supervision
  }

  async #startInstance(image: UnpackedImage, isFirst: boolean): Promise<Instance> {
    const protocol = this.#plan.protocolOf(isFirst)
    this.#instance = startInstance({ ...this.#plan, image, protocol }, this.#ending.signal)
    const instance = await this.#instance
    this.#state = 'running'
    return instance
  }

  async #supervise(image: UnpackedImage, first: Instance): Promise<void> {
    let instance: Instance | undefined = first
    while (instance !== undefined) {
      await instance.exited
      this.#state = 'restarting'
      const crash = await instance.cleanedUp
      if (this.#ending.signal.aborted) return
      this.#crashes.record(crash)
      instance = await this.#restart(image)
    }
  }

  /** Returns an instance that accepts requests; undefined after `end` or too many crashes. */
  async #restart(image: UnpackedImage): Promise<Instance | undefined> {
    const { signal } = this.#ending
    while (!this.#crashes.hasReachedLimit) {
      await delay(this.#plan.pauseMs(this.#crashes.recent), undefined, { signal }).catch(() => {})
      if (signal.aborted) return undefined
      try {
        return await this.#startInstance(image, false)
      } catch (error) {
        if (signal.aborted) return undefined
        this.#crashes.record(error instanceof Error ? error.message : String(error))
      }
    }
    this.#state = 'failed'
    return undefined
  }
}
