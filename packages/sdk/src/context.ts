import { type EventBus } from './events.ts'
import { type Logger } from './logger.ts'
import { type ServiceProvider } from './services.ts'

/** What a module is given by the platform. */
export interface ModuleContext {
  /** The organisation that the module is installed in. */
  readonly orgId: string
  readonly module: { readonly id: string; readonly version: string }
  readonly eventBus: EventBus
  /** What `configureServices` has registered. */
  readonly services: ServiceProvider
  /** Disposed of after `dispose`, in reverse order, whatever happened before: `disposables.use(…)`, `.defer(…)`. */
  readonly disposables: AsyncDisposableStack
  /**
   * Whether the instance lives until it is stopped. Where it does not (Lambda) it may be frozen after any answer, and others
   * may run beside it: what must last belongs outside of the process.
   */
  readonly isPersistent: boolean
  /** A logger whose lines carry `module_id`, `module_version` and the category, by default the module's id. */
  readonly getLogger: (category?: string) => Logger
}
