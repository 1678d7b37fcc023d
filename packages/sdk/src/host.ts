import { Hono } from 'hono'
import { Bus } from './bus.ts'
import { type ModuleContext } from './context.ts'
import { type ModuleDefinition } from './definition.ts'
import { describeInstance } from './describe.ts'
import { type ModuleEnvironment } from './environment.ts'
import { HookError, toHookError } from './hook-error.ts'
import { type Logger, loggerOf } from './logger.ts'
import { type Description, type State } from './protocol.ts'
import { provideServices, type ServiceProvider } from './services.ts'
import { timeLimit, withinLimit } from './time-limit.ts'

/** Timeout of `configure`, `start` and `stop` in milliseconds, unless the platform specifies another. */
export const defaultHookMs = 30_000
/** Time that active requests have to finish once the module stops, in milliseconds. */
export const drainMs = 5000
/** Time between the abort of the `stop` hook's signal and the timeout of the hook, in milliseconds. */
const stopMarginMs = 1000
/** Timeout of the `dispose` hook in milliseconds. The disposal of `disposables` has the same timeout. */
const disposeMs = 5000

/** Settings of an instance. `isPersistent` is false on Lambda. */
export type HostSettings = Pick<ModuleEnvironment, 'organisationId' | 'startsItself'> & { isPersistent: boolean }

/**
 * One instance of a module and its lifecycle: Loading → Configured → Started → Stopped → Disposed, or Failed if a hook
 * fails. Repeated and concurrent calls of a hook share one run and its result.
 */
export class ModuleHost {
  readonly definition: ModuleDefinition
  readonly context: ModuleContext
  readonly bus: Bus
  /** The module's routes; empty until the module is configured. */
  readonly app = new Hono()
  /** Aborts when the module stops, and cancels its active work. */
  readonly stopping: AbortSignal
  readonly #stop = new AbortController()
  readonly #startsItself: boolean
  readonly #log: Logger
  readonly #requests = new Set<Promise<unknown>>()
  #drainedByMs: number | undefined
  #state: State = 'Loading'
  #configured: Promise<void> | undefined
  #started: Promise<void> | undefined
  #stopped: Promise<void> | undefined
  #disposed: Promise<void> | undefined

  constructor(definition: ModuleDefinition, { organisationId, startsItself, isPersistent }: HostSettings) {
    const module = { id: definition.id, version: definition.version }
    this.definition = definition
    this.bus = new Bus(module.id)
    this.stopping = this.#stop.signal
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
    return describeInstance(this.definition, { state: this.#state, subscriptions: this.bus.types })
  }

  configure(limitMs = defaultHookMs): Promise<void> {
    this.#requireNotStopped('configured')
    return (this.#configured ??= this.#runHook('configure', 'Configured', limitMs, async (signal) => {
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
    if (this.#started === undefined && this.#state !== 'Configured') throw this.#wrongState('started')
    return (this.#started ??= this.#runHook('start', 'Started', limitMs, (signal) =>
      this.definition.start?.(signal, this.context),
    ))
  }

  /** Starts the module first if it is configured to start itself. Throws `HookError` if the module is not started. */
  async whenStarted(): Promise<void> {
    if (this.#startsItself) await this.configure().then(() => this.start())
    if (this.#state !== 'Started') throw this.#wrongState('called')
  }

  /** Delays disposal until the request has a response, at most for `drainMs`. */
  async during<Result>(request: Promise<Result>): Promise<Result> {
    this.#requests.add(request)
    try {
      return await request
    } finally {
      this.#requests.delete(request)
    }
  }

  /** Cancels active work and calls the `stop` hook if the module was started. */
  stop(graceMs = defaultHookMs): Promise<void> {
    return (this.#stopped ??= this.#end(graceMs))
  }

  /** Releases all resources, in every state and despite errors. */
  dispose(): Promise<void> {
    return (this.#disposed ??= this.#release())
  }

  #createServices(): ServiceProvider {
    try {
      return provideServices((services) => this.definition.configureServices?.(services))
    } catch (error) {
      // The instance must keep running, so that `configure` returns the error to the platform.
      this.#configured = Promise.reject(this.#failed('configureServices', error))
      this.#configured.catch(() => {})
      return provideServices(() => {})
    }
  }

  async #runHook(hook: string, state: State, limitMs: number, work: (signal: AbortSignal) => unknown): Promise<void> {
    try {
      await withinLimit(hook, limitMs, [this.stopping], work)
      this.stopping.throwIfAborted()
      this.#setState(state)
    } catch (error) {
      throw this.#failed(hook, error)
    }
  }

  #failed(hook: string, error: unknown): HookError {
    // A hook that is cancelled by a stop has not failed.
    if (!this.stopping.aborted) {
      this.#setState('Failed')
      this.#log.error(`${hook} failed`, { code: hook === 'start' ? 'PLAT-MOD-5005' : 'PLAT-MOD-5004', error })
    }
    return toHookError(error)
  }

  async #end(graceMs: number): Promise<void> {
    this.#cancelWork('The module is stopping.')
    try {
      if (this.#started !== undefined && this.#disposed === undefined) {
        using aborting = timeLimit('stop', graceMs - Math.min(stopMarginMs, graceMs / 2))
        await withinLimit('stop', graceMs, [], () => this.definition.stop?.(aborting.signal, this.context))
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
    const remainingMs = Math.max(0, (this.#drainedByMs ?? 0) - performance.now())
    await withinLimit('requests', remainingMs, [], () => Promise.allSettled(this.#requests)).catch(() => {})
    const hooks = [() => this.definition.dispose?.(this.context), () => this.context.disposables.disposeAsync()]
    const problems: unknown[] = []
    for (const hook of hooks) await withinLimit('dispose', disposeMs, [], hook).catch((error) => problems.push(error))
    this.#setState('Disposed')
    for (const error of problems) this.#log.error('dispose failed', { error })
    if (problems.length > 0) throw toHookError(problems[0])
  }

  // Requests are not cancelled; they have `drainMs` to finish.
  #cancelWork(message: string): void {
    this.#drainedByMs ??= performance.now() + drainMs
    this.#stop.abort(new HookError('wrong_state', message))
  }

  #setState(state: State): void {
    this.#state = state
    this.#log.info(`The module is ${state}`)
  }

  #requireNotStopped(action: string): void {
    if (this.#stop.signal.aborted) throw this.#wrongState(action)
  }

  #wrongState(action: string): HookError {
    return new HookError('wrong_state', `The module is ${this.#state} and cannot be ${action}.`)
  }
}
