import type { EventBus } from './events.ts'
import type { Logger } from './logger.ts'
import type { ServiceProvider } from './services.ts'

/** The context that the SDK passes to hooks (except `configureServices`), jobs, health checks and routes. */
export interface ModuleContext {
  /**
   * Id of the platform organisation, which owns all modules; empty without a platform. Callers and events have their
   * own `organisationId`.
   */
  readonly orgId: string
  readonly module: { readonly id: string; readonly version: string }
  readonly eventBus: EventBus
  /** Provides the services that `configureServices` has registered. */
  readonly services: ServiceProvider
  /**
   * Resources that are disposed of after the `dispose` hook, in reverse order, even after errors. Add them with
   * `disposables.use(…)` or `.defer(…)`.
   */
  readonly disposables: AsyncDisposableStack
  /**
   * Whether the instance runs until it is stopped. If false (Lambda), the instance may be frozen after any response and
   * other instances may run concurrently. Store persistent data outside of the process.
   */
  readonly isPersistent: boolean
  /**
   * Returns a logger. Each line contains `module_id`, `module_version` and the category, by default the module's id.
   */
  readonly getLogger: (category?: string) => Logger
}
