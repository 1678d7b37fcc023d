/** A text to be found, whatever it is wrapped in. */
export interface Secret {
  kind: string
  text: string
}

const gramBytes = 12
const tableBits = 22

/**
 * The part of a secret that tells nothing but it: a token begins with what may be known, such as its session, and ends with
 * what may not.
 */
const coreOf = (text: string): string => text.slice(-40)

/** What a text looks like in Base64 wherever it stands: at each of three offsets, without the ends that neighbours change. */
function base64Of(text: string): string[] {
  const bytes = Buffer.from(text)
  return [0, 1, 2].flatMap((offset) => {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes])
    const whole = shifted.toString('base64').replace(/=+$/, '')
    const inner = whole.slice(offset === 0 ? 0 : offset + 1, Math.floor((shifted.length * 4) / 3) - 1)
    return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

const hexOf = (text: string): string[] => {
  const hex = Buffer.from(text).toString('hex')
  return [hex, hex.toUpperCase()]
}

/** All the ways in which a secret may be written down. */
const spellingsOf = (text: string): string[] => [
  ...new Set([
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
    encodeURIComponent(text).replaceAll(/%[\dA-F]{2}/g, (code) => code.toLowerCase()),
    ...base64Of(text),
    ...hexOf(text),
  ]),
]

const hashAt = (bytes: Uint8Array, from: number): number => {
  let hash = 0
  for (let index = from; index < from + gramBytes; index++) hash = (Math.imul(hash, 31) + (bytes[index] ?? 0)) | 0
  return hash
}

const leading = (() => {
  let power = 1
  for (let index = 1; index < gramBytes; index++) power = Math.imul(power, 31)
  return power
})()

/** Finds any of many secrets in any amount of text, in one pass. */
export class Needles {
  readonly #mask = (1 << tableBits) - 1
  readonly #marks = new Uint8Array(1 << tableBits)
  readonly #byGram = new Map<string, { spelling: string; secret: Secret }[]>()

  constructor(secrets: readonly Secret[]) {
    for (const secret of secrets) {
      for (const spelling of spellingsOf(coreOf(secret.text)))
        this.#add(Buffer.from(spelling).toString('latin1'), secret)
    }
  }

  #add(spelling: string, secret: Secret): void {
    if (spelling.length < gramBytes) return
    const gram = spelling.slice(0, gramBytes)
    const others = this.#byGram.get(gram) ?? []
    this.#byGram.set(gram, [...others, { spelling, secret }])
    this.#marks[hashAt(Buffer.from(gram, 'latin1'), 0) & this.#mask] = 1
  }

  /** Which secrets stand in a text, each once. */
  in(haystack: string | Buffer): Secret[] {
    const bytes = typeof haystack === 'string' ? Buffer.from(haystack) : haystack
    const found = new Set<Secret>()
    if (bytes.length < gramBytes) return []
    let hash = hashAt(bytes, 0)
    for (let from = 0; ; from++) {
      if (this.#marks[hash & this.#mask] === 1) this.#compare(bytes, from, found)
      if (from + gramBytes >= bytes.length) return [...found]
      hash = (hash - Math.imul(bytes[from] ?? 0, leading)) | 0
      hash = (Math.imul(hash, 31) + (bytes[from + gramBytes] ?? 0)) | 0
    }
  }

  #compare(bytes: Buffer, from: number, found: Set<Secret>): void {
    const candidates = this.#byGram.get(bytes.toString('latin1', from, from + gramBytes)) ?? []
    for (const { spelling, secret } of candidates) {
      if (bytes.toString('latin1', from, from + spelling.length) === spelling) found.add(secret)
    }
  }
}
