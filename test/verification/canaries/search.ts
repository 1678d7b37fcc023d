import { randomBytes } from 'node:crypto'

export interface Secret {
  kind: string
  text: string
}

/** Returns a random secret whose text differs in each encoding. */
export const randomSecret = (kind: string): string => `canary ${kind} ${randomBytes(9).toString('base64url')} +"ä%/`

const prefixLength = 12

/** Tokens start with public parts, such as the session id, and end with the secret. */
const secretPart = (text: string): string => text.slice(-40)

/**
 * Returns the Base64 of a text at each of the three alignments, without the characters that its neighbours determine.
 */
const base64Of = (text: string): string[] =>
  [0, 1, 2].flatMap((offset) => {
    const shiftedText = Buffer.concat([Buffer.alloc(offset), Buffer.from(text)])
    const encoded = shiftedText.toString('base64').replace(/=+$/, '')
    const stablePart = encoded.slice(offset === 0 ? 0 : offset + 1, Math.floor((shiftedText.length * 4) / 3) - 1)
    return [stablePart, stablePart.replaceAll('+', '-').replaceAll('/', '_')]
  })

function encodingsOf(text: string): Set<string> {
  const percentEncoded = encodeURIComponent(text)
  const hex = Buffer.from(text).toString('hex')
  const lowerCasePercent = percentEncoded.replaceAll(/%[\dA-F]{2}/g, (code) => code.toLowerCase())
  const json = JSON.stringify(text).slice(1, -1)
  return new Set([text, json, percentEncoded, lowerCasePercent, ...base64Of(text), hex, hex.toUpperCase()])
}

export class SecretSearch {
  readonly #byPrefix = new Map<string, { encoded: string; secret: Secret }[]>()

  constructor(secrets: readonly Secret[]) {
    for (const secret of secrets) {
      for (const encoding of encodingsOf(secretPart(secret.text))) {
        const encoded = Buffer.from(encoding).toString('latin1')
        if (encoded.length < prefixLength) continue
        const prefix = encoded.slice(0, prefixLength)
        this.#byPrefix.set(prefix, [...(this.#byPrefix.get(prefix) ?? []), { encoded, secret }])
      }
    }
  }

  find(text: string): Map<Secret, number> {
    const found = new Map<Secret, number>()
    for (let index = 0; index + prefixLength <= text.length; index++) {
      for (const { encoded, secret } of this.#byPrefix.get(text.slice(index, index + prefixLength)) ?? []) {
        if (!found.has(secret) && text.startsWith(encoded, index)) found.set(secret, index)
      }
    }
    return found
  }

  describe(texts: Iterable<string>): string[] {
    return [...texts].flatMap((text) =>
      [...this.find(text)].map(([{ kind }, at]) => `${kind}: ${text.slice(Math.max(0, at - 150), at + 120)}`),
    )
  }
}
