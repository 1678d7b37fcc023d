import type { EventName, EventOf } from '@platform/contract/event'

type DataOfPlatformEvents = { [Name in EventName as `platform.${Name}`]: Extract<EventOf, { name: Name }>['data'] }

/**
 * Every event that handlers may subscribe to: type → data. The platform's own are in it; those of modules are added by
 * declaration merging:
 *
 *     declare module '@platform/modules' {
 *       interface EventRegistry { 'module.greeter.greeted': { name: string } }
 *     }
 */
export interface EventRegistry extends DataOfPlatformEvents {}

/** A type of event: one of the registry, or one of a module that does not say what its data are. */
export type EventType = keyof EventRegistry | `module.${string}.${string}`

/** The data of an event of that type. */
export type EventData<Type extends string> = Type extends keyof EventRegistry
  ? EventRegistry[Type]
  : Readonly<Record<string, unknown>>

/** An event as a handler gets it. */
export interface ModuleEvent<Type extends string = string> {
  /** The same event has the same id, however often it is delivered. */
  readonly id: string
  readonly type: Type
  /** When it happened, ISO 8601 in UTC. */
  readonly time: string
  /** What it happened to, such as a cluster's id. */
  readonly subject: string
  /** The organisation that it belongs to. */
  readonly organisationId: string
  readonly data: EventData<Type>
}

/**
 * Works on an event; it counts as handled once the promise is fulfilled. The signal aborts when time is up or the module
 * stops. A handler that throws is given the event again later, and not sooner than that: never in a loop.
 */
export type EventHandler<Type extends string = string> = (
  event: ModuleEvent<Type>,
  signal: AbortSignal,
) => void | Promise<void>

/** Events of the platform, and the module's own. */
export interface EventBus {
  /**
   * Hands every event of a type to a handler. Only in `configure`: the platform asks once what a module wants to hear of.
   * Each event comes at least once; this process hands it to a handler once only, as far as it remembers. Disposing the
   * handle ends it: `context.disposables.use(context.eventBus.subscribe(…))`.
   */
  subscribe: <Type extends EventType>(type: Type, handler: EventHandler<Type>) => Disposable
  /**
   * Publishes an event of the module: type `module.<its own id>.<name>`, data of at most 8 KiB of JSON and 16 levels. It
   * leaves with the module's next answer to the platform, and is lost if the process ends before. Rejects what is not such
   * an event, and everything while 1,000 events wait.
   */
  publish: <Type extends `module.${string}.${string}`>(
    type: Type,
    data: EventData<Type>,
    options?: { subject?: string },
  ) => Promise<void>
}
