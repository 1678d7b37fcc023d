import type { EventName, EventOf } from '@platform/contract/event'

type DataOfPlatformEvents = { [Name in EventName as `platform.${Name}`]: Extract<EventOf, { name: Name }>['data'] }

/**
 * Events that handlers can subscribe to: type → data. It includes the events of the platform. Modules add their events
 * by declaration merging:
 *
 *     declare module '@platform/modules' {
 *       interface EventRegistry { 'module.greeter.greeted': { name: string } }
 *     }
 */
export interface EventRegistry extends DataOfPlatformEvents {}

/** An event type of the registry, or the type of a module event without declared data. */
export type EventType = keyof EventRegistry | `module.${string}.${string}`

/** The data of an event type; any JSON object if the registry does not contain the type. */
export type EventData<Type extends string> = Type extends keyof EventRegistry
  ? EventRegistry[Type]
  : Readonly<Record<string, unknown>>

/** An event as a handler receives it. */
export interface ModuleEvent<Type extends string = string> {
  /** Unique id of the event, the same in every delivery. */
  readonly id: string
  readonly type: Type
  /** Time at which the event occurred, in ISO 8601, UTC. */
  readonly time: string
  /** Id of the affected resource, such as a cluster. */
  readonly subject: string
  /** Id of the organisation that the event belongs to. */
  readonly organisationId: string
  readonly data: EventData<Type>
}

/**
 * Handles an event, which counts as handled once the promise is fulfilled. The signal aborts after 10 seconds, when the
 * platform's request times out, or when the module stops. If the handler throws, the platform retries after a delay.
 */
export type EventHandler<Type extends string = string> = (
  event: ModuleEvent<Type>,
  signal: AbortSignal,
) => void | Promise<void>

/** Subscribes to events of the platform and of modules, and publishes the module's own. */
export interface EventBus {
  /**
   * Subscribes a handler to an event type. Call it only in `configure`, because the platform reads the subscriptions
   * once. Delivery is at least once; the process drops duplicates that it remembers. Disposing of the result ends the
   * subscription: `context.disposables.use(context.eventBus.subscribe(…))`. Throws `Error` after `configure`, and
   * `TypeError` for a type that does not start with `platform.` or `module.`.
   */
  subscribe: <Type extends EventType>(type: Type, handler: EventHandler<Type>) => Disposable
  /**
   * Publishes an event of the module: type `module.<own id>.<name>`, data of at most 8 KiB of JSON and 16 levels. A
   * later response of the module to the platform carries the event; the event is lost if the process ends before that
   * response. Rejects with `TypeError` or `RangeError` if the event is invalid or too large, and with `RangeError`
   * while 1,000 events are queued.
   */
  publish: <Type extends `module.${string}.${string}`>(
    type: Type,
    data: EventData<Type>,
    options?: { subject?: string },
  ) => Promise<void>
}
