import { readFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { readPublicKey } from '@platform/registry/signature/key'
import { parseReference } from '@platform/registry/reference'
import * as z from 'zod'

/** A public key whose signatures count, as the functions get it in `PLAT_MODULE_KEYS` and `PLAT_RELEASE_KEYS`. */
export interface TrustedKey {
  name: string
  pem: string
  repositories?: readonly string[] | undefined
}

const entriesOf = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)

/** A repository, or all that a registry lists. */
function isSource(entry: string): boolean {
  const reference = parseReference(entry.replace(/\/\*$/, '/all'))
  return reference !== undefined && reference.tag === undefined && reference.digest === undefined
}

/** The setting `PLAT_MODULE_SOURCES`. */
export const Sources = z
  .string()
  .refine(
    (text) => entriesOf(text).every(isSource),
    'must be registry/repository or registry/*, separated by commas, without tags',
  )

/** The settings `PLAT_MODULE_TRUSTED_KEYS` and `PLAT_RELEASE_TRUSTED_KEYS`: files that are read at the start; a key is called as its file is. */
export const TrustedKeyFiles = z.string().transform((text, context): TrustedKey[] =>
  entriesOf(text).flatMap((file) => {
    const pem = contentOf(file)
    if (pem === undefined) context.addIssue(`${resolve(file)} cannot be read`)
    else if (readPublicKey(pem) === undefined) {
      context.addIssue(`${resolve(file)} must hold a public key as PEM: ECDSA, Ed25519, or RSA of 2048 bits or more`)
    } else
      return [
        {
          name: basename(file)
            .replace(/\.(?:pem|pub)$/, '')
            .slice(0, 100),
          pem,
        },
      ]
    return []
  }),
)

function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
