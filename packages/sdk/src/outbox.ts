import { publishedLimits } from './protocol.ts'

const maxQueuedEvents = 1000
// Maximum length of the type and of the subject, so that an event with the maximum data fits in the header.
const maxNameLength = 200
const maxDepth = 16

/** Published events that have not been sent in a response yet. */
export class Outbox {
  readonly #moduleId: string
  // `PublishedEvent` as JSON, oldest first.
  readonly #queuedEvents: string[] = []

  constructor(moduleId: string) {
    this.#moduleId = moduleId
  }

  /** Queues an event. Throws `TypeError` if its type or data is invalid, and `RangeError` if it exceeds a limit. */
  add(type: string, data: unknown, subject: string | undefined): void {
    if (this.#queuedEvents.length >= maxQueuedEvents)
      throw new RangeError(`${maxQueuedEvents} published events are already queued.`)
    const prefix = `module.${this.#moduleId}.`
    const isOwnType = type.startsWith(prefix) && /^[\w-]+(\.[\w-]+)*$/.test(type.slice(prefix.length))
    if (!isOwnType) {
      throw new TypeError(`A module publishes events of the type ${prefix}<name> only.`)
    }
    if (Math.max(type.length, subject?.length ?? 0) > maxNameLength) {
      throw new RangeError(`Type and subject of an event have at most ${maxNameLength} characters.`)
    }
    const event = { type, ...(subject !== undefined && { subject: subject.toWellFormed() }), data: copyOf(data) }
    this.#queuedEvents.push(JSON.stringify(event))
  }

  /**
   * Removes as many events as fit in one response, oldest first, and returns them as a header value. Returns undefined
   * if none are queued.
   */
  take(): string | undefined {
    const events = this.#queuedEvents.splice(0, this.#countFitting())
    return events.length === 0 ? undefined : Buffer.from(`[${events.join(',')}]`).toString('base64url')
  }

  #countFitting(): number {
    const maxBytes = Math.floor((publishedLimits.headerBytes * 3) / 4)
    let bytes = 2
    const candidates = this.#queuedEvents.slice(0, publishedLimits.events)
    const firstExcessIndex = candidates.findIndex((event) => (bytes += Buffer.byteLength(event) + 1) > maxBytes)
    return firstExcessIndex === -1 ? candidates.length : firstExcessIndex
  }
}

// Copies the data, so that later changes do not affect the event.
function copyOf(data: unknown): Record<string, unknown> {
  const text = JSON.stringify(data) ?? ''
  if (!text.startsWith('{')) throw new TypeError('Event data must be a JSON object.')
  if (Buffer.byteLength(text) > publishedLimits.dataBytes) {
    throw new RangeError(`Event data must not exceed ${publishedLimits.dataBytes} bytes of JSON.`)
  }
  const copy = JSON.parse(text)
  if (!isWithinDepth(copy, maxDepth)) throw new RangeError(`Event data must not exceed ${maxDepth} levels.`)
  return copy
}

const isWithinDepth = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((member) => isWithinDepth(member, levels - 1)))
