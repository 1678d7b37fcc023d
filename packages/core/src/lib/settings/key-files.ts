import { readFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { readPublicKey } from '@platform/oci/signature/key'
import * as z from 'zod'
import { parseList } from './list.ts'

export interface TrustedKey {
  name: string
  pem: string
  repositories?: readonly string[] | undefined
}

/** Each file contains one key; the file name without `.pem` or `.pub` is the name of the key. */
export const TrustedKeyFiles = z.string().transform((text, context): TrustedKey[] =>
  parseList(text).flatMap((file) => {
    const pem = readKeyFile(file)
    if (pem !== undefined && readPublicKey(pem) !== undefined) return [{ name: keyNameOf(file), pem }]
    context.addIssue(
      pem === undefined
        ? `${resolve(file)} cannot be read`
        : `${resolve(file)} must contain a public key as PEM: ECDSA, Ed25519, or RSA of 2048 bits or more`,
    )
    return []
  }),
)

const keyNameOf = (file: string): string =>
  basename(file)
    .replace(/(?<=.)\.(?:pem|pub)$/, '')
    .slice(0, 100)

function readKeyFile(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
