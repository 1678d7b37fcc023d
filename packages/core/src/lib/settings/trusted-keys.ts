import { readPublicKey } from '@platform/oci/signature/key'
import * as z from 'zod'

const timestamp = z.iso.datetime({ offset: true })

const TrustedKey = z.strictObject({
  name: z.string().min(1).max(100),
  // Rejects private keys and unsupported types, which would never match.
  pem: z
    .string()
    .refine(
      (pem) => readPublicKey(pem) !== undefined,
      'must be a public key as PEM: ECDSA, Ed25519, or RSA of 2048 bits or more',
    ),
  /** The key may sign for these repositories and all below them; if omitted, for all repositories. */
  repositories: z.array(z.string().min(1)).min(1).exactOptional(),
  notBefore: timestamp.exactOptional(),
  notAfter: timestamp.exactOptional(),
})

export const maxTrustedKeys = 50

export const TrustedKeys = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      context.addIssue('must be JSON: [{"name": "…", "pem": "…"}]')
      return z.NEVER
    }
  })
  .pipe(z.array(TrustedKey).max(maxTrustedKeys))
