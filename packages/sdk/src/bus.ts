import type { EventBus, EventHandler, ModuleEvent } from './events.ts'
import { messageOf } from './message.ts'
import { Outbox } from './outbox.ts'
import type { EventsResponse } from './protocol.ts'
import { Subscription } from './subscription.ts'

/** The subscriptions and the outbox of one module instance. */
export class Bus implements EventBus {
  readonly outbox: Outbox
  readonly #subscriptions = new Set<Subscription>()
  #isOpen = true

  constructor(moduleId: string) {
    this.outbox = new Outbox(moduleId)
  }

  get subscribedTypes(): string[] {
    return [...new Set([...this.#subscriptions].map(({ type }) => type))].toSorted()
  }

  subscribe<Type extends string>(type: Type, handler: EventHandler<Type>): Disposable {
    if (!this.#isOpen) throw new Error('Subscribe to events only in configure.')
    if (!/^(platform|module)\../.test(type)) throw new TypeError(`${type} is not an event type.`)
    // The platform delivers only events of the subscribed type, with data that matches the contract.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const subscription = new Subscription(type, handler as EventHandler)
    this.#subscriptions.add(subscription)
    return { [Symbol.dispose]: () => void this.#subscriptions.delete(subscription) }
  }

  async publish(type: string, data: unknown, options: { subject?: string } = {}): Promise<void> {
    this.outbox.add(type, data, options.subject)
  }

  /** Prevents new subscriptions. Existing subscriptions remain until they are disposed of. */
  close(): void {
    this.#isOpen = false
  }

  /**
   * Delivers events to their handlers, one event at a time, and returns the ids of the handled events and the errors of
   * the others. When the signal aborts, all remaining events fail.
   */
  async deliver(events: readonly ModuleEvent[], signal: AbortSignal): Promise<EventsResponse> {
    const handled: string[] = []
    const failed: { id: string; message: string }[] = []
    for (const event of events) {
      const messages = await this.#deliverOne(event, signal)
      if (messages.length === 0) handled.push(event.id)
      else failed.push({ id: event.id, message: messages.join('; ').slice(0, 1000) })
    }
    return { handled, failed }
  }

  async #deliverOne(event: ModuleEvent, signal: AbortSignal): Promise<string[]> {
    const subscriptions = [...this.#subscriptions].filter(({ type }) => type === event.type)
    const results = await Promise.allSettled(subscriptions.map((subscription) => subscription.deliver(event, signal)))
    return results.flatMap((result) => (result.status === 'rejected' ? [messageOf(result.reason)] : []))
  }
}
