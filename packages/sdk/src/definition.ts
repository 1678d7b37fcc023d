import type { Hono } from 'hono'
import type { ModuleContext } from './context.ts'
import type { HealthResponse } from './protocol.ts'
import type { ServiceCollection } from './services.ts'

/** An entry in the portal's navigation. */
export interface NavigationSlot {
  /** Kebab-case; unique within the slot. */
  id: string
  label: string
  /** Name of a Lucide icon, such as `hand`. */
  icon: string
  /** `/modules/<module id>`, or a path below it. */
  route: `/modules/${string}`
  /** 0 to 10,000; lower values come first. Built-in entries use 0 to 50. */
  order: number
}

/** Slots of the portal: slot id → entry. Portals add slots by declaration merging. */
export interface SlotRegistry {
  'nav.primary': NavigationSlot
  'nav.settings': NavigationSlot
}

/** An entry that a module adds to a slot of the portal. */
export type Slot = { [Id in keyof SlotRegistry]: { slotId: Id } & SlotRegistry[Id] }[keyof SlotRegistry]

/**
 * Effect of an Unhealthy check: `critical` makes the platform not ready, `degradable` makes it Degraded, and
 * `informational` has no effect. A check without tags counts as `degradable`.
 */
export type HealthTag = 'informational' | 'degradable' | 'critical'

/** Result of a health check. Operators see the first 500 characters of the description. */
export type Health = HealthResponse

/** A health check with a timeout of 4 seconds. It is Unhealthy if it throws or exceeds the timeout. */
export interface HealthCheck {
  tags: readonly HealthTag[]
  check: (context: ModuleContext, signal: AbortSignal) => Health | Promise<Health>
}

/** A background job. The platform calls it on every kind of runtime, so a module needs no timers. */
export interface Job {
  /** One sentence, shown to operators. */
  description: string
  /** A whole number of seconds, 1 to 86,400. */
  intervalSeconds: number
  /** The signal aborts on timeout or when the module stops. Runs of a job do not overlap. */
  run: (context: ModuleContext, signal: AbortSignal) => void | Promise<void>
}

/**
 * A module. Each lifecycle hook runs at most once per instance, in the order below. The signal of a hook aborts on
 * timeout (30 seconds by default), that of `stop` up to a second earlier. The platform starts modules only after
 * `configure` of all modules that start together has ended.
 */
export interface ModuleDefinition {
  /** Kebab-case; the same as `metadata.id` in module.json. */
  id: string
  /** SemVer; the same as `metadata.version` in module.json. */
  version: string
  slots?: readonly Slot[]
  /** Health checks by kebab-case name. Each is served at `/health/<name>`, and their aggregate at `/health`. */
  healthChecks?: Readonly<Record<string, HealthCheck>>
  /** Background jobs by kebab-case id. */
  jobs?: Readonly<Record<string, Job>>
  /** Registers services. Services cannot be resolved yet. */
  configureServices?: (services: ServiceCollection) => void
  /** Subscribes to events and fills caches. If it throws, the module is Failed; other modules are not affected. */
  configure?: (context: ModuleContext, signal: AbortSignal) => void | Promise<void>
  /** Starts the module's work. On Lambda it runs in each instance. */
  start?: (signal: AbortSignal, context: ModuleContext) => void | Promise<void>
  /** Ends the work and flushes buffers on uninstall, upgrade, SIGTERM or SIGINT, if `start` was called. */
  stop?: (signal: AbortSignal, context: ModuleContext) => void | Promise<void>
  /** Releases resources, in every state. `context.disposables` are disposed of afterwards. Timeout: 5 seconds. */
  dispose?: (context: ModuleContext) => void | Promise<void>
  /** Adds the module's routes after `configure`: paths below its `apiBasePath`, and `/modules/<id>`. */
  routes?: (app: Hono, context: ModuleContext) => void
}
