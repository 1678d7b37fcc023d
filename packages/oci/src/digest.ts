import { createHash } from 'node:crypto'

/** Returns the SHA-256 digest: `sha256:` and 64 hexadecimal digits. */
export const digestOf = (content: Uint8Array | string): string =>
  `sha256:${createHash('sha256').update(content).digest('hex')}`

/** Supports only SHA-256, which registries use in practice. */
export const isDigest = (text: string): boolean => /^sha256:[0-9a-f]{64}$/.test(text)

/** Returns the tag for a digest: `sha256-` and its hexadecimal digits (OCI referrers tag). */
export const digestTag = (digest: string): string => digest.replace(':', '-')
