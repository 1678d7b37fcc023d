import { setTimeout as delay } from 'node:timers/promises'
import { elapsedMs } from '@platform/core/clock'
import { jitter } from '@platform/core/id'
import { type Instance, type InstancePlan, startInstance } from './instance.ts'
import type { UnpackedImage } from './launcher.ts'
import type { DeploymentStatus } from './port.ts'

const crashWindowMs = 600_000
const maxCrashes = 5
const firstDelayMs = 500
const maxDelayMs = 30_000

export const restartDelayMs = (crashCount: number): number =>
  Math.min(maxDelayMs, firstDelayMs * 2 ** Math.max(0, crashCount - 1)) * (0.75 + 0.25 * jitter())

export class CrashCounter {
  #timesMs: number[] = []
  #lastReason: string | undefined

  record(reason: string): void {
    this.#timesMs.push(elapsedMs())
    this.#lastReason = reason
  }

  get recentCount(): number {
    this.#timesMs = this.#timesMs.filter((time) => time > elapsedMs() - crashWindowMs)
    return this.#timesMs.length
  }

  get lastReason(): string | undefined {
    return this.#lastReason
  }

  /** The supervisor does not restart a deployment that has reached the limit. */
  get hasReachedLimit(): boolean {
    return this.recentCount >= maxCrashes
  }
}

export interface SupervisorPlan extends Omit<InstancePlan, 'image' | 'protocol'> {
  /**
   * Returns the environment variables of an instance. The platform runs the hooks of the first instance; each later one
   * configures and starts itself.
   */
  protocolOf: (isFirst: boolean) => InstancePlan['protocol']
  pauseMs: (crashCount: number) => number
}

/**
 * Keeps one deployment running: restarts it after a crash with a delay, until it has crashed too often. Does not retry
 * the first start, but throws its error.
 */
export class Supervisor {
  readonly #plan: SupervisorPlan
  readonly #endController = new AbortController()
  readonly #crashCounter = new CrashCounter()
  #state: DeploymentStatus['state'] = 'restarting'
  /** The last instance, or the one that is starting. */
  #instance: Promise<Instance> | undefined
  #supervision: Promise<void> | undefined
  #endPromise: Promise<void> | undefined

  constructor(plan: SupervisorPlan) {
    this.#plan = plan
  }

  async start(image: UnpackedImage): Promise<void> {
    const instance = await this.#startInstance(image, true)
    this.#supervision = this.#supervise(image, instance)
  }

  get status(): Omit<DeploymentStatus, 'deployment'> {
    const { recentCount, lastReason } = this.#crashCounter
    return { state: this.#state, crashes: recentCount, ...(lastReason !== undefined && { lastCrash: lastReason }) }
  }

  /** Ends the deployment permanently, even while it starts. Settles after the cleanup. */
  end(graceMs: number): Promise<void> {
    return (this.#endPromise ??= this.#end(graceMs))
  }

  async #end(graceMs: number): Promise<void> {
    this.#endController.abort()
    const instance = await this.#instance?.catch(() => undefined)
    await instance?.end(graceMs)
    await this.#supervision
  }

  async #startInstance(image: UnpackedImage, isFirst: boolean): Promise<Instance> {
    const protocol = this.#plan.protocolOf(isFirst)
    this.#instance = startInstance({ ...this.#plan, image, protocol }, this.#endController.signal)
    const instance = await this.#instance
    this.#state = 'running'
    return instance
  }

  async #supervise(image: UnpackedImage, firstInstance: Instance): Promise<void> {
    let instance: Instance | undefined = firstInstance
    while (instance !== undefined) {
      await instance.exited
      this.#state = 'restarting'
      const crash = await instance.cleanedUp
      if (this.#endController.signal.aborted) return
      this.#crashCounter.record(crash)
      instance = await this.#restart(image)
    }
  }

  /** Returns an instance that accepts requests; undefined after `end` or too many crashes. */
  async #restart(image: UnpackedImage): Promise<Instance | undefined> {
    const { signal } = this.#endController
    while (!this.#crashCounter.hasReachedLimit) {
      await delay(this.#plan.pauseMs(this.#crashCounter.recentCount), undefined, { signal }).catch(() => {})
      if (signal.aborted) return undefined
      try {
        return await this.#startInstance(image, false)
      } catch (error) {
        if (signal.aborted) return undefined
        this.#crashCounter.record(error instanceof Error ? error.message : String(error))
      }
    }
    this.#state = 'failed'
    return undefined
  }
}
