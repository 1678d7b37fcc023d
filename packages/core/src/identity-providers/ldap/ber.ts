/** BER encodes each element of an LDAP message as a tag, a length and the content. */

/** `start` is the position of the tag; `from` and `to` delimit the content. */
export interface BerElement {
  tag: number
  start: number
  from: number
  to: number
}

export class MalformedResponse extends Error {
  override readonly name = 'MalformedResponse'
}

/**
 * Returns undefined while the header is incomplete. The element may end beyond the bytes. Throws `MalformedResponse` if
 * the length is invalid.
 */
export function elementAt(bytes: Buffer, start: number): BerElement | undefined {
  const [tag, length] = [bytes[start], bytes[start + 1]]
  if (tag === undefined || length === undefined) return undefined
  if (length < 0x80) return { tag, start, from: start + 2, to: start + 2 + length }
  const size = length - 0x80
  if (size === 0 || size > 4) throw new MalformedResponse('invalid length')
  const from = start + 2 + size
  if (bytes.length < from) return undefined
  return { tag, start, from, to: from + bytes.readUIntBE(start + 2, size) }
}

/** `tags` are the expected tags in order; the last one applies to all further elements. */
export function childrenOf(
  bytes: Buffer,
  { from, to }: Pick<BerElement, 'from' | 'to'>,
  tags: readonly number[],
): BerElement[] {
  const children: BerElement[] = []
  for (let position = from; position < to;) {
    const child = elementAt(bytes, position)
    const isExpected = child?.tag === (tags[children.length] ?? tags.at(-1))
    if (child === undefined || child.to > to || !isExpected) throw new MalformedResponse('unexpected element')
    children.push(child)
    position = child.to
  }
  return children
}

export const encode = (tag: number, ...content: Uint8Array[]): Buffer => {
  const body = Buffer.concat(content)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length)
  return Buffer.concat([Buffer.from([tag, 0x84]), length, body])
}
