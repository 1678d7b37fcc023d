import { type EventHandler, type ModuleEvent } from './events.ts'
import { withinLimit } from './time-limit.ts'

const remembered = 1000
const handlerMs = 10_000

/** A handler, and the events that it has handled or is handling. */
export class Subscription {
  readonly type: string
  readonly #handler: EventHandler
  /** Event id → promise of the handler; oldest first. */
  readonly #works = new Map<string, Promise<void>>()

  constructor(type: string, handler: EventHandler) {
    this.type = type
    this.#handler = handler
  }

  /** Delivers an event, unless it was or is being handled. Rejects if the handler fails or exceeds the timeout. */
  hand(event: ModuleEvent, signal: AbortSignal): Promise<void> {
    return withinLimit('A handler', handlerMs, [signal], async (limited) => {
      await (this.#works.get(event.id) ?? this.#begin(event, limited))
    })
  }

  #begin(event: ModuleEvent, signal: AbortSignal): Promise<void> {
    const work = Promise.resolve(event).then((given) => this.#handler(given, signal))
    this.#works.set(event.id, work)
    this.#forgetOldest()
    // A failed event is handled again at its next delivery.
    work.catch(() => this.#works.delete(event.id))
    return work
  }

  #forgetOldest(): void {
    const [oldest] = this.#works.keys()
    if (this.#works.size > remembered && oldest !== undefined) this.#works.delete(oldest)
  }
}
