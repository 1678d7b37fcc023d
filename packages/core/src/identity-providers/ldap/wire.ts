import { Duplex } from 'node:stream'
import { childrenOf, type BerElement, elementAt, encode, MalformedResponse } from './ber.ts'

/**
 * Validates incoming LDAP messages (RFC 4511). The client library loops on lengths beyond a message and accepts results
 * without a code, so it receives only validated messages. Referrals and controls are dropped, except for the control of
 * paged results (RFC 2696).
 */

const maxBytes = 1024 * 1024

const tags = { boolean: 1, integer: 2, text: 4, code: 10, sequence: 0x30, set: 0x31, controls: 0xa0 } as const
const operations = { bindDone: 0x61, entry: 0x64, searchDone: 0x65, reference: 0x73, extendedDone: 0x78 } as const

function resultOf(bytes: Buffer, operation: BerElement): { code: number; content: Buffer } {
  const elements: BerElement[] = []
  for (let position = operation.from; elements.length < 3; position = elements.at(-1)?.to ?? 0) {
    const element = elementAt(bytes, position)
    const isExpected = element?.tag === (elements.length === 0 ? tags.code : tags.text)
    if (element === undefined || element.to > operation.to || !isExpected) throw new MalformedResponse('invalid result')
    elements.push(element)
  }
  const [code] = elements
  if (code === undefined || code.to - code.from !== 1) throw new MalformedResponse('result without a code')
  return { code: bytes[code.from] ?? 0, content: bytes.subarray(operation.from, elements.at(-1)?.to) }
}

function checkEntry(bytes: Buffer, operation: BerElement): void {
  const [, attributes] = childrenOf(bytes, operation, [tags.text, tags.sequence])
  if (attributes === undefined) throw new MalformedResponse('entry without attributes')
  for (const attribute of childrenOf(bytes, attributes, [tags.sequence])) {
    const [, values] = childrenOf(bytes, attribute, [tags.text, tags.set])
    if (values === undefined) throw new MalformedResponse('attribute without values')
    childrenOf(bytes, values, [tags.text])
  }
}

const pagedResultsOid = '1.2.840.113556.1.4.319'

/** Returns the control of paged results, rebuilt from its size and cookie, or an empty buffer. */
function pagedResultsControlOf(bytes: Buffer, range: Pick<BerElement, 'from' | 'to'>): Buffer {
  const [controls] = range.from < range.to ? childrenOf(bytes, range, [tags.controls]) : []
  for (const control of controls === undefined ? [] : childrenOf(bytes, controls, [tags.sequence])) {
    const oid = elementAt(bytes, control.from)
    if (oid === undefined || bytes.toString('latin1', oid.from, oid.to) !== pagedResultsOid) continue
    const nextElement = elementAt(bytes, oid.to)
    const value = nextElement?.tag === tags.boolean ? elementAt(bytes, nextElement.to) : nextElement
    const [content] =
      value?.tag === tags.text && value.to <= control.to ? childrenOf(bytes, value, [tags.sequence]) : []
    const [size, cookie] = content === undefined ? [] : childrenOf(bytes, content, [tags.integer, tags.text])
    if (size === undefined || cookie === undefined || size.to === size.from || size.to - size.from > 4)
      throw new MalformedResponse('invalid paged results')
    const parts = [size, cookie].map(({ tag, from, to }) => encode(tag, bytes.subarray(from, to)))
    const octets = encode(tags.text, encode(tags.sequence, ...parts))
    const encodedOid = encode(tags.text, Buffer.from(pagedResultsOid))
    return encode(tags.controls, encode(tags.sequence, encodedOid, octets))
  }
  return Buffer.alloc(0)
}

/** Returns the message without referrals and unsupported controls; undefined for a search reference. */
function sanitise(bytes: Buffer, message: BerElement): Buffer | undefined {
  const id = elementAt(bytes, message.from)
  const operation = id && elementAt(bytes, id.to)
  if (id?.tag !== tags.integer || id.to - id.from > 4 || operation === undefined || operation.to > message.to) {
    throw new MalformedResponse('message without an operation')
  }
  const idBytes = bytes.subarray(id.start, id.to)
  const rebuild = (content: Uint8Array, controls: Uint8Array = Buffer.alloc(0)) =>
    encode(tags.sequence, idBytes, encode(operation.tag, content), controls)
  if (operation.tag === operations.reference) return undefined
  if (operation.tag === operations.entry) {
    checkEntry(bytes, operation)
    return rebuild(bytes.subarray(operation.from, operation.to))
  }
  if (operation.tag !== operations.bindDone && operation.tag !== operations.searchDone) {
    throw new MalformedResponse('unsolicited operation')
  }
  const isSearch = operation.tag === operations.searchDone
  const controls = isSearch ? pagedResultsControlOf(bytes, { from: operation.to, to: message.to }) : undefined
  return rebuild(resultOf(bytes, operation).content, controls)
}

function messageAt(bytes: Buffer, start: number): BerElement | undefined {
  const message = elementAt(bytes, start)
  if (message === undefined) return undefined
  if (message.tag !== tags.sequence) throw new MalformedResponse('not an LDAP message')
  if (message.to - message.start > maxBytes) throw new MalformedResponse('more than 1 MiB')
  return message
}

/** Forwards valid messages to the client. Fails at the first invalid one, and after 1 MiB. */
export class LdapMessages extends Duplex {
  /** The client library reads these members of a socket. */
  readonly connecting = false
  readonly readyState = 'open'
  #socket: Duplex
  #pendingChunks: Buffer[] = []
  #pendingBytes = 0
  #neededBytes = 2
  #totalBytes = 0

  constructor(socket: Duplex) {
    super({ autoDestroy: true })
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
  }

  #receive(chunk: Buffer): void {
    this.#totalBytes += chunk.length
    this.#pendingChunks.push(chunk)
    this.#pendingBytes += chunk.length
    if (this.#totalBytes > maxBytes) this.destroy(new MalformedResponse('more than 1 MiB'))
    if (this.destroyed || this.#pendingBytes < this.#neededBytes) return
    try {
      this.#forward(Buffer.concat(this.#pendingChunks))
    } catch (error) {
      this.destroy(error instanceof Error ? error : new MalformedResponse(String(error)))
    }
  }

  #forward(bytes: Buffer): void {
    let position = 0
    let nextMessage = messageAt(bytes, position)
    while (nextMessage !== undefined && nextMessage.to <= bytes.length) {
      const message = sanitise(bytes, nextMessage)
      if (message !== undefined) this.push(message)
      position = nextMessage.to
      nextMessage = messageAt(bytes, position)
    }
    const incompleteBytes = bytes.subarray(position)
    this.#pendingChunks = [incompleteBytes]
    this.#pendingBytes = incompleteBytes.length
    this.#neededBytes = nextMessage === undefined ? incompleteBytes.length + 1 : nextMessage.to - position
  }

  override _read(): void {
    // No backpressure is needed, because the total size is limited.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.#socket.write(chunk, callback)
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#socket.destroy()
    callback(error)
  }
}

const startTlsOid = Buffer.from('1.3.6.1.4.1.1466.20037')
export const startTlsRequest = encode(tags.sequence, Buffer.from([2, 1, 1]), encode(0x77, encode(0x80, startTlsOid)))

/**
 * Returns undefined while the response is incomplete. Rejects trailing data, which an attacker could inject before the
 * TLS session.
 */
export function isStartTlsAccepted(bytes: Buffer): boolean | undefined {
  const message = elementAt(bytes, 0)
  if (message === undefined) return undefined
  if (message.tag !== tags.sequence || message.to > 10_000) throw new MalformedResponse('no response to StartTLS')
  if (bytes.length < message.to) return undefined
  const id = elementAt(bytes, message.from)
  const operation = id && elementAt(bytes, id.to)
  const isWellFormed = bytes.length === message.to && operation !== undefined && operation.to <= message.to
  if (!isWellFormed || operation.tag !== operations.extendedDone) throw new MalformedResponse('no response to StartTLS')
  return resultOf(bytes, operation).code === 0
}
