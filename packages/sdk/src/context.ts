import { type EventBus } from './events.ts'
import { type Logger } from './logger.ts'
import { type ServiceProvider } from './services.ts'

/** The context that the platform passes to a module. */
export interface ModuleContext {
  /** Id of the organisation that the module is installed in. */
  readonly orgId: string
  readonly module: { readonly id: string; readonly version: string }
  readonly eventBus: EventBus
  /** Services that `configureServices` has registered. */
  readonly services: ServiceProvider
  /** Disposed of after the `dispose` hook in reverse order, even after errors: `disposables.use(…)`, `.defer(…)`. */
  readonly disposables: AsyncDisposableStack
  /**
   * Whether the instance runs until it is stopped. If false (Lambda), the instance may be frozen after any response and
   * other instances may run concurrently. Store persistent data outside of the process.
   */
  readonly isPersistent: boolean
  /** Returns a logger. Its lines contain `module_id`, `module_version` and the category, by default the module's id. */
  readonly getLogger: (category?: string) => Logger
}
