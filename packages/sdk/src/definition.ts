import { type Hono } from 'hono'
import { type ModuleContext } from './context.ts'
import { type HealthAnswer } from './protocol.ts'
import { type ServiceCollection } from './services.ts'

/** An entry of the portal's navigation. */
export interface NavigationSlot {
  /** Kebab-case; unique in the slot. */
  id: string
  label: string
  /** The name of a Lucide icon, such as `hand`. */
  icon: string
  /** `/modules/<id of the module>` or below. */
  route: `/modules/${string}`
  /** Lower is higher, 0 to 10,000; built-in entries use 0 to 50. */
  order: number
}

/** Places of the portal: slot id → what a module may put there. A portal adds its own by declaration merging. */
export interface SlotRegistry {
  'nav.primary': NavigationSlot
  'nav.settings': NavigationSlot
}

/** Something that a module adds to the portal. */
export type Slot = { [Id in keyof SlotRegistry]: { slotId: Id } & SlotRegistry[Id] }[keyof SlotRegistry]

/** How much a failing check matters: `critical` makes the platform not ready, `degradable` degrades it. */
export type HealthTag = 'informational' | 'degradable' | 'critical'

/** What a health check finds. The description is shown to operators, in at most 500 characters. */
export type Health = HealthAnswer

/** A health check; it has 4 seconds. One that throws, or takes longer, is Unhealthy. */
export interface HealthCheck {
  tags: readonly HealthTag[]
  check: (context: ModuleContext, signal: AbortSignal) => Health | Promise<Health>
}

/** A background job. The platform calls it, on every kind of runtime: a module keeps no timer of its own (D44). */
export interface Job {
  /** One sentence, shown to operators. */
  description: string
  /** 1 to 86,400. */
  intervalSeconds: number
  /** The signal aborts when time is up or the module stops. While one run lasts no other begins. */
  run: (context: ModuleContext, signal: AbortSignal) => void | Promise<void>
}

/**
 * A module. Its hooks are called in this order, each once; the signals abort when a hook's time (30 seconds) is up. Every
 * module's `configure` has ended before any `start` begins.
 */
export interface ModuleDefinition {
  /** Kebab-case; the same as `metadata.id` in module.json. */
  id: string
  /** SemVer; the same as `metadata.version` in module.json. */
  version: string
  slots?: readonly Slot[]
  /** By name, kebab-case. Each is served at `/health/<name>`, and all of them together at `/health`. */
  healthChecks?: Readonly<Record<string, HealthCheck>>
  /** By id, kebab-case. */
  jobs?: Readonly<Record<string, Job>>
  /** Registers services. Nothing can be asked for yet. */
  configureServices?: (services: ServiceCollection) => void
  /** Subscribes to events, warms caches. If it throws the module has Failed, and others go on. */
  configure?: (context: ModuleContext, signal: AbortSignal) => void | Promise<void>
  /** Begins to work. On Lambda each instance does so for itself. */
  start?: (signal: AbortSignal, context: ModuleContext) => void | Promise<void>
  /** Ends the work and writes away what is buffered: at an uninstall, an upgrade or SIGTERM, if `start` was called. */
  stop?: (signal: AbortSignal, context: ModuleContext) => void | Promise<void>
  /** Lets go of what is held, in any case; `context.disposables` follow. Has 5 seconds. */
  dispose?: (context: ModuleContext) => void | Promise<void>
  /** Adds the module's routes, once it is configured: those below its `apiBasePath`, and `/modules/<id>`. */
  routes?: (app: Hono, context: ModuleContext) => void
}
