import { setTimeout as delay } from 'node:timers/promises'
import { type Instance, type InstancePlan, startInstance } from './instance.ts'
import { type UnpackedImage } from './launcher.ts'
import { type DeploymentStatus } from './port.ts'
import { CrashCounter } from './crash-policy.ts'

/** What is kept running. */
export interface SupervisorPlan extends Omit<InstancePlan, 'image' | 'protocol'> {
  /** What an instance is told; the first one may be led through its hooks, each later one starts itself. */
  protocolOf: (isFirst: boolean) => InstancePlan['protocol']
  /** The pause before the next start after so many crashes. */
  pauseMs: (crashes: number) => number
}

/**
 * Keeps one deployment running: what crashes is started again after a pause, until it has crashed too often (D43). The
 * first start is not repeated: who asked for it is told.
 */
export class Supervisor {
  readonly #plan: SupervisorPlan
  readonly #ending = new AbortController()
  readonly #crashes = new CrashCounter()
  #state: DeploymentStatus['state'] = 'restarting'
  /** The last instance, or the one that is being started. */
  #instance: Promise<Instance> | undefined
  #kept: Promise<void> | undefined
  #ended: Promise<void> | undefined

  constructor(plan: SupervisorPlan) {
    this.#plan = plan
  }

  /** Throws `RuntimeFailure`. */
  async start(image: UnpackedImage): Promise<void> {
    const instance = await this.#startInstance(image, true)
    this.#kept = this.#keep(image, instance)
  }

  get status(): Omit<DeploymentStatus, 'deployment'> {
    const { recent, last } = this.#crashes
    return { state: this.#state, crashes: recent, ...(last !== undefined && { lastCrash: last }) }
  }

  /** Ends it for good, also while it starts. Settles when nothing of it is left. */
  end(graceMs: number): Promise<void> {
    return (this.#ended ??= this.#end(graceMs))
  }

  async #end(graceMs: number): Promise<void> {
    this.#ending.abort()
    const instance = await this.#instance?.catch(() => undefined)
    await instance?.end(graceMs)
    await this.#kept
  }

  async #startInstance(image: UnpackedImage, isFirst: boolean): Promise<Instance> {
    const protocol = this.#plan.protocolOf(isFirst)
    this.#instance = startInstance({ ...this.#plan, image, protocol }, this.#ending.signal)
    const instance = await this.#instance
    this.#state = 'running'
    return instance
  }

  async #keep(image: UnpackedImage, first: Instance): Promise<void> {
    let instance: Instance | undefined = first
    while (instance !== undefined) {
      await instance.exited
      this.#state = 'restarting'
      const crash = await instance.gone
      if (this.#ending.signal.aborted) return
      this.#crashes.note(crash)
      instance = await this.#restart(image)
    }
  }

  /** The next instance that can be asked; undefined where there shall be none. */
  async #restart(image: UnpackedImage): Promise<Instance | undefined> {
    const { signal } = this.#ending
    while (!this.#crashes.areTooMany) {
      await delay(this.#plan.pauseMs(this.#crashes.recent), undefined, { signal }).catch(() => {})
      if (signal.aborted) return undefined
      try {
        return await this.#startInstance(image, false)
      } catch (error) {
        if (signal.aborted) return undefined
        this.#crashes.note(error instanceof Error ? error.message : String(error))
      }
    }
    this.#state = 'failed'
    return undefined
  }
}
