import { Hono } from 'hono'
import { Bus } from './bus.ts'
import type { ModuleContext } from './context.ts'
import type { ModuleDefinition } from './definition.ts'
import { describeInstance } from './describe.ts'
import type { ModuleEnvironment } from './environment.ts'
import { HookError, toHookError } from './hook-error.ts'
import { type Logger, loggerOf } from './logger.ts'
import type { Description, State } from './protocol.ts'
import { provideServices, type ServiceProvider } from './services.ts'
import { startTimeLimit, withinLimit } from './time-limit.ts'

/** Timeout of `configure`, `start` and `stop` in milliseconds, unless the platform specifies another. */
export const defaultHookMs = 30_000
/** Time that active requests have to finish once the module stops, in milliseconds. */
export const drainMs = 5000
/** Maximum time between the abort of the `stop` hook's signal and the timeout of the hook, in milliseconds. */
const stopMarginMs = 1000
/** Timeout of the `dispose` hook in milliseconds. The disposal of `disposables` has the same timeout. */
const disposeMs = 5000

/** Settings of an instance. `isPersistent` is false on Lambda. */
export type HostSettings = Pick<ModuleEnvironment, 'organisationId' | 'startsItself'> & { isPersistent: boolean }

/**
 * One instance of a module and its lifecycle: Loading → Configured → Started → Stopped → Disposed, or Failed if
 * `configureServices`, `configure` or `start` fails. Repeated and concurrent calls of a hook share one run and its
 * result.
 */
export class ModuleHost {
  readonly definition: ModuleDefinition
  readonly context: ModuleContext
  readonly bus: Bus
  /** The module's routes; empty until the module is configured. */
  readonly app = new Hono()
  /** Aborts when the module stops or is disposed of, to cancel hooks, jobs, checks and event handlers. */
  readonly stopSignal: AbortSignal
  readonly #stopController = new AbortController()
  readonly #startsItself: boolean
  readonly #log: Logger
  readonly #requests = new Set<Promise<unknown>>()
  #drainDeadlineMs: number | undefined
  #state: State = 'Loading'
  #configureRun: Promise<void> | undefined
  #startRun: Promise<void> | undefined
  #stopRun: Promise<void> | undefined
  #disposeRun: Promise<void> | undefined

  constructor(definition: ModuleDefinition, { organisationId, startsItself, isPersistent }: HostSettings) {
    const module = { id: definition.id, version: definition.version }
    this.definition = definition
    this.bus = new Bus(module.id)
    this.stopSignal = this.#stopController.signal
    this.#startsItself = startsItself
    this.#log = loggerOf(module, 'lifecycle')
    this.context = {
      orgId: organisationId,
      module,
      eventBus: this.bus,
      services: this.#createServices(),
      disposables: new AsyncDisposableStack(),
      isPersistent,
      getLogger: (category = module.id) => loggerOf(module, category),
    }
  }

  get state(): State {
    return this.#state
  }

  describe(): Description {
    return describeInstance(this.definition, { state: this.#state, subscriptions: this.bus.subscribedTypes })
  }

  configure(limitMs = defaultHookMs): Promise<void> {
    this.#requireNotStopped('configured')
    return (this.#configureRun ??= this.#runHook('configure', 'Configured', limitMs, async (signal) => {
      await this.definition.configure?.(this.context, signal)
      // After a timeout the module has failed and may already be disposed of.
      signal.throwIfAborted()
      this.bus.close()
      // A module in JavaScript may return a promise, which must be awaited.
      return this.definition.routes?.(this.app, this.context)
    }))
  }

  start(limitMs = defaultHookMs): Promise<void> {
    this.#requireNotStopped('started')
    if (this.#startRun === undefined && this.#state !== 'Configured') throw this.#wrongStateError('started')
    return (this.#startRun ??= this.#runHook('start', 'Started', limitMs, (signal) =>
      this.definition.start?.(signal, this.context),
    ))
  }

  /** Starts the module first if it is configured to start itself. Throws `HookError` if the module is not started. */
  async whenStarted(): Promise<void> {
    if (this.#startsItself) await this.configure().then(() => this.start())
    if (this.#state !== 'Started') throw this.#wrongStateError('called')
  }

  /** Makes disposal wait for the response to the request, until at most `drainMs` after the stop. */
  async trackRequest<Result>(request: Promise<Result>): Promise<Result> {
    this.#requests.add(request)
    try {
      return await request
    } finally {
      this.#requests.delete(request)
    }
  }

  /** Cancels hooks, jobs, checks and event handlers, and calls the `stop` hook if `start` was called. */
  stop(graceMs = defaultHookMs): Promise<void> {
    return (this.#stopRun ??= this.#end(graceMs))
  }

  /** Releases all resources, in every state and despite errors. Rejects with the first error. */
  dispose(): Promise<void> {
    return (this.#disposeRun ??= this.#release())
  }

  #createServices(): ServiceProvider {
    try {
      return provideServices((services) => this.definition.configureServices?.(services))
    } catch (error) {
      // The instance must keep running, so that `configure` returns the error to the platform.
      this.#configureRun = Promise.reject(this.#fail('configureServices', error))
      this.#configureRun.catch(() => {})
      return provideServices(() => {})
    }
  }

  async #runHook(hook: string, state: State, limitMs: number, work: (signal: AbortSignal) => unknown): Promise<void> {
    try {
      await withinLimit(hook, limitMs, [this.stopSignal], work)
      this.stopSignal.throwIfAborted()
      this.#setState(state)
    } catch (error) {
      throw this.#fail(hook, error)
    }
  }

  #fail(hook: string, error: unknown): HookError {
    // A hook that is cancelled by a stop has not failed.
    if (!this.stopSignal.aborted) {
      this.#setState('Failed')
      this.#log.error(`${hook} failed`, { code: hook === 'start' ? 'PLAT-MOD-5005' : 'PLAT-MOD-5004', error })
    }
    return toHookError(error)
  }

  async #end(graceMs: number): Promise<void> {
    this.#cancelWork('The module is stopping.')
    try {
      if (this.#startRun !== undefined && this.#disposeRun === undefined) {
        using abortLimit = startTimeLimit('stop', graceMs - Math.min(stopMarginMs, graceMs / 2))
        await withinLimit('stop', graceMs, [], () => this.definition.stop?.(abortLimit.signal, this.context))
      }
    } catch (error) {
      this.#log.error('stop failed', { error })
      throw toHookError(error)
    } finally {
      if (this.#state !== 'Disposed') this.#setState('Stopped')
    }
  }

  async #release(): Promise<void> {
    this.#cancelWork('The module is disposed of.')
    const remainingMs = Math.max(0, (this.#drainDeadlineMs ?? 0) - performance.now())
    await withinLimit('requests', remainingMs, [], () => Promise.allSettled(this.#requests)).catch(() => {})
    const hooks = [() => this.definition.dispose?.(this.context), () => this.context.disposables.disposeAsync()]
    const errors: unknown[] = []
    for (const hook of hooks) await withinLimit('dispose', disposeMs, [], hook).catch((error) => errors.push(error))
    this.#setState('Disposed')
    for (const error of errors) this.#log.error('dispose failed', { error })
    if (errors.length > 0) throw toHookError(errors[0])
  }

  // Active requests are not cancelled; they have `drainMs` to finish.
  #cancelWork(message: string): void {
    this.#drainDeadlineMs ??= performance.now() + drainMs
    this.#stopController.abort(new HookError('wrong_state', message))
  }

  #setState(state: State): void {
    this.#state = state
    this.#log.info(`The module is ${state}`)
  }

  #requireNotStopped(action: string): void {
    if (this.#stopController.signal.aborted) throw this.#wrongStateError(action)
  }

  #wrongStateError(action: string): HookError {
    return new HookError('wrong_state', `The module is ${this.#state} and cannot be ${action}.`)
  }
}
