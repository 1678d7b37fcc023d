import { readPublicKey } from '@platform/oci/signature/key'
import * as z from 'zod'

/** An end of the time that a key is trusted in. */
const moment = z.iso.datetime({ offset: true })

const TrustedKey = z.strictObject({
  /** What people are told of who has signed. */
  name: z.string().min(1).max(100),
  // A private key is never to be found in a setting, and one that is not taken would vouch for nothing, silently.
  pem: z
    .string()
    .refine(
      (pem) => readPublicKey(pem) !== undefined,
      'must be a public key as PEM: ECDSA, Ed25519, or RSA of 2048 bits or more',
    ),
  /** Repositories that it may sign for, and all below them, with the registry or without; all where it names none. */
  repositories: z.array(z.string().min(1)).min(1).exactOptional(),
  notBefore: moment.exactOptional(),
  notAfter: moment.exactOptional(),
})

/** As many keys as count at once. */
export const maxTrustedKeys = 50

/** The setting `PLAT_MODULE_KEYS`: public keys whose signatures count, as JSON (D46). */
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
