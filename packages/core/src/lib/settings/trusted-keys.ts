import { readPublicKey } from '@platform/oci/signature/key'
import * as z from 'zod'

const timestamp = z.iso.datetime({ offset: true })

const TrustedKey = z.strictObject({
  /** The signer's display name. */
  name: z.string().min(1).max(100),
  // Rejects private keys and unsupported types, which would never match.
  pem: z
    .string()
    .refine(
      (pem) => readPublicKey(pem) !== undefined,
      'must be a public key as PEM: ECDSA, Ed25519, or RSA of 2048 bits or more',
    ),
  /** Repositories that the key may sign for, and all below them; all if omitted. */
  repositories: z.array(z.string().min(1)).min(1).exactOptional(),
  notBefore: timestamp.exactOptional(),
  notAfter: timestamp.exactOptional(),
})

export const maxTrustedKeys = 50

/** The setting `PLAT_MODULE_KEYS`: trusted public keys as JSON. */
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
