import * as z from 'zod'

/**
 * Signed payloads of both cosign layouts: the tag `sha256-<digest>.sig` (simple signing) and the referrer (an in-toto
 * statement). Both contain the digest. Neither contains a reliable image name.
 */

export const statementType = 'application/vnd.in-toto+json'
export const signPredicateType = 'https://sigstore.dev/cosign/sign/v1'

const signatureType = 'cosign container image signature'

const encodeJson = (content: unknown): Buffer => Buffer.from(JSON.stringify(content))

const hexOf = (digest: string): string => digest.slice('sha256:'.length)

/** Returns the payload to sign in the tag layout. `reference`: registry and repository, for information only. */
export const simpleSigningPayload = (reference: string, digest: string): Buffer =>
  encodeJson({
    critical: {
      identity: { 'docker-reference': reference },
      image: { 'docker-manifest-digest': digest },
      type: signatureType,
    },
    optional: null,
  })

export const statementPayload = (digest: string): Buffer =>
  encodeJson({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ digest: { sha256: hexOf(digest) }, annotations: {} }],
    predicateType: signPredicateType,
    predicate: {},
  })

const SimpleSigning = z.object({
  critical: z.object({
    image: z.object({ 'docker-manifest-digest': z.string() }),
    type: z.literal(signatureType),
  }),
})

const Statement = z.object({
  _type: z.literal('https://in-toto.io/Statement/v1'),
  subject: z.array(z.object({ digest: z.object({ sha256: z.string() }) })),
  predicateType: z.literal(signPredicateType),
})

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

/** Returns the digests in a simple signing payload; none for other content. The signature must be verified first. */
export const simpleSigningDigests = (payload: Buffer): string[] => {
  const { data } = SimpleSigning.safeParse(parseJson(payload))
  return data ? [data.critical.image['docker-manifest-digest']] : []
}

/** Same as `simpleSigningDigests`, for a statement. */
export const statementDigests = (payload: Buffer): string[] => {
  const { data } = Statement.safeParse(parseJson(payload))
  return data?.subject.map(({ digest }) => `sha256:${digest.sha256}`) ?? []
}
