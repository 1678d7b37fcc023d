/** The encoding of what directories and their clients say (BER): a tag, a length, and that many bytes. */

/** One element of BER: its tag and where its content begins and ends. */
export interface BerElement {
  tag: number
  start: number
  from: number
  to: number
}

export class MalformedResponse extends Error {
  override readonly name = 'MalformedAnswer'
}

/** The element that begins here; undefined where its header is not complete yet. It may end beyond the bytes. */
export function elementAt(bytes: Buffer, start: number): BerElement | undefined {
  const [tag, length] = [bytes[start], bytes[start + 1]]
  if (tag === undefined || length === undefined) return undefined
  if (length < 0x80) return { tag, start, from: start + 2, to: start + 2 + length }
  const size = length - 0x80
  if (size === 0 || size > 4) throw new MalformedResponse('a length that is none')
  const from = start + 2 + size
  if (bytes.length < from) return undefined
  return { tag, start, from, to: from + bytes.readUIntBE(start + 2, size) }
}

/** The elements that fill another one, of these tags; the last tag stands for all that follow. */
export function childrenOf(
  bytes: Buffer,
  { from, to }: Pick<BerElement, 'from' | 'to'>,
  tags: readonly number[],
): BerElement[] {
  const children: BerElement[] = []
  for (let at = from; at < to;) {
    const child = elementAt(bytes, at)
    const isFitting = child?.tag === (tags[children.length] ?? tags.at(-1))
    if (child === undefined || child.to > to || !isFitting) throw new MalformedResponse('an element out of place')
    children.push(child)
    at = child.to
  }
  return children
}

/** An element with some content. */
export const element = (tag: number, ...content: Uint8Array[]): Buffer => {
  const body = Buffer.concat(content)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length)
  return Buffer.concat([Buffer.from([tag, 0x84]), length, body])
}
