import { publishedLimits } from './protocol.ts'

const maxWaiting = 1000
/** With the limit on data, a single event always fits in the header. */
const maxNameLength = 200
const maxDepth = 16

/** Published events that no response has carried yet. */
export class Outbox {
  readonly #moduleId: string
  /** `PublishedEvent` as JSON, oldest first. */
  readonly #waiting: string[] = []

  constructor(moduleId: string) {
    this.#moduleId = moduleId
  }

  /** Queues an event. Throws `TypeError` if its type or data is invalid, and `RangeError` if it exceeds a limit. */
  add(type: string, data: unknown, subject: string | undefined): void {
    if (this.#waiting.length >= maxWaiting) throw new RangeError(`${maxWaiting} published events wait already.`)
    const prefix = `module.${this.#moduleId}.`
    const isOwn = type.startsWith(prefix) && /^[\w-]+(\.[\w-]+)*$/.test(type.slice(prefix.length))
    if (!isOwn) {
      throw new TypeError(`A module publishes events of the type ${prefix}<name> only.`)
    }
    if (Math.max(type.length, subject?.length ?? 0) > maxNameLength) {
      throw new RangeError(`Type and subject of an event have at most ${maxNameLength} characters.`)
    }
    const event = { type, ...(subject !== undefined && { subject: subject.toWellFormed() }), data: plain(data) }
    this.#waiting.push(JSON.stringify(event))
  }

  /** Removes as many events as fit, oldest first, and returns the header value; undefined if none are queued. */
  take(): string | undefined {
    const carried = this.#waiting.splice(0, this.#fitting())
    return carried.length === 0 ? undefined : Buffer.from(`[${carried.join(',')}]`).toString('base64url')
  }

  #fitting(): number {
    const maxBytes = Math.floor((publishedLimits.headerBytes * 3) / 4)
    let bytes = 2
    const first = this.#waiting.slice(0, publishedLimits.events)
    const tooMany = first.findIndex((event) => (bytes += Buffer.byteLength(event) + 1) > maxBytes)
    return tooMany === -1 ? first.length : tooMany
  }
}

/** Copies the data as JSON within the limits, so that later changes do not affect the event. */
function plain(data: unknown): Record<string, unknown> {
  const text = JSON.stringify(data) ?? ''
  if (!text.startsWith('{')) throw new TypeError('The data of an event are an object that JSON can hold.')
  if (Buffer.byteLength(text) > publishedLimits.dataBytes) {
    throw new RangeError(`The data of an event are more than ${publishedLimits.dataBytes} bytes of JSON.`)
  }
  const copy = JSON.parse(text)
  if (!isShallow(copy, maxDepth)) throw new RangeError(`The data of an event are more than ${maxDepth} levels deep.`)
  return copy
}

const isShallow = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((member) => isShallow(member, levels - 1)))
