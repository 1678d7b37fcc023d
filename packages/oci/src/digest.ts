import { createHash } from 'node:crypto'

/** The digest of some content: `sha256:` and 64 hexadecimal digits. */
export const digestOf = (content: Uint8Array | string): string =>
  `sha256:${createHash('sha256').update(content).digest('hex')}`

/** Whether a text has the form of a digest: the algorithm is SHA-256, the only one that registries use. */
export const isDigest = (text: string): boolean => /^sha256:[0-9a-f]{64}$/.test(text)

/** The tag that stands for a digest where tags alone are to be had: `sha256-` and its digits (OCI referrers tag). */
export const digestTag = (digest: string): string => digest.replace(':', '-')
