import type { KeyObject } from 'node:crypto'
import type { RegistryClient } from '../client.ts'
import { isDigest } from '../digest.ts'
import { type DiscoveredSignature, discoverSignatures } from './discover.ts'
import { isSignatureValid, readPublicKey } from './key.ts'
import type { SignatureLayout } from './sign.ts'

export interface TrustedKey {
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
const unverifiedProblems = [
  'signature_of_other_image',
  'key_out_of_scope',
  'key_out_of_time',
  'unknown_key',
  'broken_signature',
] as const

export type UnverifiedProblem = (typeof unverifiedProblems)[number] | 'unsigned'

export type Verdict =
  /** `by`: name of the key. `digest`: the requested digest that the key has signed. */
  | { isVerified: true; by: string; layout: SignatureLayout; digest: string }
  | { isVerified: false; problem: UnverifiedProblem; reason: string }

type UnverifiedVerdict = Extract<Verdict, { isVerified: false }>

interface Key extends TrustedKey {
  key: KeyObject
}

/**
 * Verifies that a trusted key has signed one of several digests: of a platform's image or of its index. A signature
 * covers a digest, not a name. Certificates and transparency log entries are ignored. Throws `RegistryError` if the
 * registry is unreachable or refuses a request.
 */
export async function verifyImage(
  client: RegistryClient,
  repository: string,
  digests: readonly string[],
  trustedKeys: readonly TrustedKey[],
  { atMs = Date.now() }: { atMs?: number } = {},
): Promise<Verdict> {
  const keys = trustedKeys.flatMap((each) => {
    const key = readPublicKey(each.pem)
    return key === undefined ? [] : [{ ...each, key }]
  })
  const failures: UnverifiedVerdict[] = []
  const uniqueDigests = new Set(digests)
  for (const digest of uniqueDigests) {
    for await (const signature of discoverSignatures(client, repository, digest)) {
      const verdict = verifySignature(signature, { registry: client.registry, repository, digest, atMs }, keys)
      if (verdict.isVerified) return verdict
      failures.push(verdict)
    }
  }
  const first = unverifiedProblems.flatMap((problem) => failures.filter((failure) => failure.problem === problem))[0]
  return first ?? unverified('unsigned', `No signature of ${[...uniqueDigests].join(' or ')} is in ${repository}.`)
}

const unverified = (problem: UnverifiedProblem, reason: string): UnverifiedVerdict => ({
  isVerified: false,
  problem,
  reason,
})

interface VerificationRequest {
  registry: string
  repository: string
  digest: string
  atMs: number
}

function verifySignature(
  { layout, content, readDigests }: DiscoveredSignature,
  request: VerificationRequest,
  keys: readonly Key[],
): Verdict {
  const { registry, repository, digest, atMs } = request
  if (content === undefined) return unverified('broken_signature', `A signature of ${digest} is broken.`)
  const signers = keys.filter(({ key }) => isSignatureValid(key, content.signedBytes, content.signature))
  if (signers.length === 0) return unverified('unknown_key', `${digest} is signed with no trusted key.`)
  const namesText = signers.map(({ name }) => name).join(', ')
  const signedDigests = readDigests()
  if (!signedDigests.includes(digest)) {
    const other = signedDigests.filter(isDigest).slice(0, 3).join(', ') || 'an invalid digest'
    return unverified(
      'signature_of_other_image',
      `A signature by ${namesText} is stored with ${digest}, but is for ${other}.`,
    )
  }
  const keysInScope = signers.filter((key) => isInScope(key, registry, repository))
  if (keysInScope.length === 0) {
    const location = `${registry}/${repository}`
    return unverified('key_out_of_scope', `${digest} is signed by ${namesText}, which is not trusted for ${location}.`)
  }
  const signer = keysInScope.find((key) => isValidAt(key, atMs))
  if (signer === undefined)
    return unverified('key_out_of_time', `${digest} is signed by ${namesText}, which is not valid now.`)
  return { isVerified: true, by: signer.name, layout, digest }
}

const isInScope = ({ repositories }: TrustedKey, registry: string, repository: string): boolean =>
  repositories === undefined ||
  repositories
    .map((each) => `${each.replace(/\/+$/, '')}/`)
    .some((each) => `${hasRegistry(each) ? `${registry}/` : ''}${repository}/`.startsWith(each))

/** Whether a location begins with a registry, by the rule of image references. */
const hasRegistry = (location: string): boolean => /^(?:localhost\/|[^/]*[.:])/.test(location)

/** An invalid date makes the key invalid. */
const isValidAt = ({ notBefore, notAfter }: TrustedKey, atMs: number): boolean =>
  (notBefore === undefined || Date.parse(notBefore) <= atMs) && (notAfter === undefined || atMs <= Date.parse(notAfter))
