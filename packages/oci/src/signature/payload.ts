import * as z from 'zod'

/**
 * What is signed, of both layouts of cosign: the tag `sha256-<digest>.sig` (simple signing) and the referrer (a
 * statement of in-toto). Both name the digest; the name of the image is in neither so that one could rely on it.
 */

export const statementType = 'application/vnd.in-toto+json'
export const signPredicate = 'https://sigstore.dev/cosign/sign/v1'

const signatureType = 'cosign container image signature'

const json = (content: unknown): Buffer => Buffer.from(JSON.stringify(content))

const hexOf = (digest: string): string => digest.slice('sha256:'.length)

/** The text that the signature under the tag is over. `reference`: registry and repository, for who reads it. */
export const simpleSigning = (reference: string, digest: string): Buffer =>
  json({
    critical: {
      identity: { 'docker-reference': reference },
      image: { 'docker-manifest-digest': digest },
      type: signatureType,
    },
    optional: null,
  })

/** The statement that the referrer's signature is over. */
export const statement = (digest: string): Buffer =>
  json({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ digest: { sha256: hexOf(digest) }, annotations: {} }],
    predicateType: signPredicate,
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
  predicateType: z.literal(signPredicate),
})

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

/** The digests that a signed text is for; none where it is another kind of text. Only for what a signature holds of. */
export const simpleSigningDigests = (payload: Buffer): string[] => {
  const { data } = SimpleSigning.safeParse(parsed(payload))
  return data ? [data.critical.image['docker-manifest-digest']] : []
}

/** As `simpleSigningDigests`, of a statement. */
export const statementDigests = (payload: Buffer): string[] => {
  const { data } = Statement.safeParse(parsed(payload))
  return data?.subject.map(({ digest }) => `sha256:${digest.sha256}`) ?? []
}
