import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'

/** Checks the signed requests of a relay as the platform does (D21): each token once, and for this path and body alone. */
export class RequestGuard {
  readonly #keys = new Map<string, KeyObject>()
  readonly #usedTokenIds = new Set<string>()
  /** Added to the clock of this server. */
  skewSeconds = 0

  trust(relayId: string, publicKey: { kty: string; crv: string; x: string }): void {
    this.#keys.set(relayId, createPublicKey({ key: publicKey, format: 'jwk' }))
  }

  revoke(relayId: string): void {
    this.#keys.delete(relayId)
  }

  /** The id of the relay that signed the request, or why it is refused. */
  check(authorization: string | undefined, path: string, body: Buffer): { relayId: string } | { refusal: string } {
    const [header, claims, signature] = /^Relay (\S+)$/.exec(authorization ?? '')?.[1]?.split('.') ?? []
    if (!header || !claims || !signature) return { refusal: 'no token' }
    const { alg, typ, kid } = decode(header)
    const key = this.#keys.get(String(kid))
    if (alg !== 'EdDSA' || typ !== 'relay+jwt' || !key) return { refusal: 'wrong header' }
    if (!verify(null, Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'))) {
      return { refusal: 'wrong signature' }
    }
    const refusal = this.#refusalOf(decode(claims), path, body)
    return refusal === undefined ? { relayId: String(kid) } : { refusal }
  }

  #refusalOf(claims: Record<string, unknown>, path: string, body: Buffer): string | undefined {
    const { aud, iat, exp, jti, bodySha256 } = claims
    const now = Date.now() / 1000 + this.skewSeconds
    if (aud !== 'platform-relay') return 'wrong audience'
    if (Number(exp) - Number(iat) > 60) return 'lives too long'
    if (!(Number(iat) <= now && now < Number(exp))) return 'not valid now'
    if (claims['path'] !== path) return 'another path'
    if (bodySha256 !== createHash('sha256').update(body).digest('base64url')) return 'wrong body'
    if (this.#usedTokenIds.has(String(jti))) return 'used before'
    this.#usedTokenIds.add(String(jti))
    return undefined
  }
}

function decode(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, 'base64url').toString())
}
