import type { EventHandler, ModuleEvent } from './events.ts'
import { withinLimit } from './time-limit.ts'

const maxRememberedEvents = 1000
const handlerTimeoutMs = 10_000

/** A handler with the newest 1,000 events that it has handled or is handling. It does not receive these twice. */
export class Subscription {
  readonly type: string
  readonly #handler: EventHandler
  // Event id → promise of the handler; oldest first.
  readonly #runs = new Map<string, Promise<void>>()

  constructor(type: string, handler: EventHandler) {
    this.type = type
    this.#handler = handler
  }

  /** Delivers an event unless it was handled; a running handler is awaited. Rejects if it fails or times out. */
  deliver(event: ModuleEvent, signal: AbortSignal): Promise<void> {
    return withinLimit('A handler', handlerTimeoutMs, [signal], async (eventSignal) => {
      await (this.#runs.get(event.id) ?? this.#start(event, eventSignal))
    })
  }

  #start(event: ModuleEvent, signal: AbortSignal): Promise<void> {
    const run = Promise.resolve(event).then((receivedEvent) => this.#handler(receivedEvent, signal))
    this.#runs.set(event.id, run)
    this.#dropOldest()
    // A failed event must be handled again at its next delivery.
    run.catch(() => this.#runs.delete(event.id))
    return run
  }

  #dropOldest(): void {
    const [oldestId] = this.#runs.keys()
    if (this.#runs.size > maxRememberedEvents && oldestId !== undefined) this.#runs.delete(oldestId)
  }
}
