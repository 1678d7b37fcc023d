import type { KeyObject } from 'node:crypto'
import type { RegistryClient } from '../client.ts'
import { isDigest } from '../digest.ts'
import { type DiscoveredSignature, discoverSignatures } from './discover.ts'
import { isSignatureValid, readPublicKey } from './key.ts'
import type { SignatureLayout } from './sign.ts'

/** A public key whose signatures are trusted. */
export interface TrustedKey {
  /** Display name. */
  name: string
  /** SPKI, as accepted by `readPublicKey`. Other text is ignored and verifies no signature. */
  pem: string
  /**
   * Repositories that the key may sign, including all below them: `team` matches `team` and `team/hello` in every
   * registry, `registry.example.com/team` only in that registry. A first component with a dot or a colon, or
   * `localhost`, is a registry. Default: all repositories.
   */
  repositories?: readonly string[]
  /** ISO 8601. Compared with the time of verification, because the time of signing is not attested. */
  notBefore?: string
  notAfter?: string
}

/** Reasons for failed verification. If several apply, the first in this order is reported. */
const problems = [
  'signature_of_other_image',
  'key_out_of_scope',
  'key_out_of_time',
  'unknown_key',
  'broken_signature',
] as const

export type UnverifiedProblem = (typeof problems)[number] | 'unsigned'

export type Verdict =
  /** `by`: name of the key. `digest`: the requested digest that the key has signed. */
  | { isVerified: true; by: string; layout: SignatureLayout; digest: string }
  /** `reason`: a human-readable sentence. */
  | { isVerified: false; problem: UnverifiedProblem; reason: string }

type Refusal = Extract<Verdict, { isVerified: false }>

interface Key extends TrustedKey {
  key: KeyObject
}

/**
 * Verifies that a trusted key has signed one of several digests: of a platform's image or of its index. A signature
 * covers a digest, not a name. Certificates and transparency log entries are ignored. Throws `RegistryError` if the
 * registry gives no usable response. Two requests for each digest, and two for each signature.
 */
export async function verifyImage(
  client: RegistryClient,
  repository: string,
  digests: readonly string[],
  trusted: readonly TrustedKey[],
  { atMs = Date.now() }: { atMs?: number } = {},
): Promise<Verdict> {
  const keys = trusted.flatMap((each) => {
    const key = readPublicKey(each.pem)
    return key === undefined ? [] : [{ ...each, key }]
  })
  const refusals: Refusal[] = []
  const asked = new Set(digests)
  for (const digest of asked) {
    for await (const found of discoverSignatures(client, repository, digest)) {
      const verdict = judge(found, { registry: client.registry, repository, digest, atMs }, keys)
      if (verdict.isVerified) return verdict
      refusals.push(verdict)
    }
  }
  const first = problems.flatMap((problem) => refusals.filter((refusal) => refusal.problem === problem))[0]
  return first ?? refused('unsigned', `No signature of ${[...asked].join(' or ')} is in ${repository}.`)
}

const refused = (problem: UnverifiedProblem, reason: string): Refusal => ({ isVerified: false, problem, reason })

interface Question {
  registry: string
  repository: string
  digest: string
  atMs: number
}

function judge({ layout, text, digests }: DiscoveredSignature, question: Question, keys: readonly Key[]): Verdict {
  const { registry, repository, digest, atMs } = question
  if (text === undefined) return refused('broken_signature', `What should be a signature of ${digest} is broken.`)
  const makers = keys.filter(({ key }) => isSignatureValid(key, text.signed, text.signature))
  if (makers.length === 0) return refused('unknown_key', `${digest} is signed with no trusted key.`)
  const names = makers.map(({ name }) => name).join(', ')
  const signed = digests()
  if (!signed.includes(digest)) {
    const other = signed.filter(isDigest).slice(0, 3).join(', ') || 'something that is no image'
    return refused('signature_of_other_image', `A signature by ${names} lies with ${digest}, but is for ${other}.`)
  }
  const inScope = makers.filter((key) => isFor(key, registry, repository))
  if (inScope.length === 0) {
    const place = `${registry}/${repository}`
    return refused('key_out_of_scope', `${digest} is signed by ${names}, which is not trusted for ${place}.`)
  }
  const by = inScope.find((key) => isInTime(key, atMs))
  if (by === undefined) return refused('key_out_of_time', `${digest} is signed by ${names}, which is not valid now.`)
  return { isVerified: true, by: by.name, layout, digest }
}

const isFor = ({ repositories }: TrustedKey, registry: string, repository: string): boolean =>
  repositories === undefined ||
  repositories
    .map((each) => `${each.replace(/\/+$/, '')}/`)
    .some((each) => `${namesRegistry(each) ? `${registry}/` : ''}${repository}/`.startsWith(each))

/** Same rule as in image references. */
const namesRegistry = (place: string): boolean => /^(?:localhost\/|[^/]*[.:])/.test(place)

/** An invalid date makes the key invalid. */
const isInTime = ({ notBefore, notAfter }: TrustedKey, atMs: number): boolean =>
  (notBefore === undefined || Date.parse(notBefore) <= atMs) && (notAfter === undefined || atMs <= Date.parse(notAfter))
