import { platformError } from '@platform/core/error'
import type { GatewayEvent } from '../request.ts'

// Other programs may resolve these sequences. They are rejected in the decoded path, so that encoding them makes no
// difference.
// oxlint-disable-next-line no-control-regex
const traversalPattern = /[\\\u0000]|(?:^|\/)\.{1,2}(?:\/|$)/

// After decoding, it is unknown whether these characters were encoded, so the module could receive another path than
// the caller sent.
const ambiguousPattern = /[%?#\ufffd]|\/\//

/**
 * Returns the percent-encoded path that a module receives: the path as it was sent if the gateway provides it,
 * otherwise the decoded path, encoded again. Throws `invalid_path` if the path is unsafe or ambiguous.
 */
export function modulePathOf({ rawPath, sentPath }: Pick<GatewayEvent, 'rawPath' | 'sentPath'>): string {
  if (traversalPattern.test(rawPath) || !rawPath.isWellFormed()) throw platformError('invalid_path')
  if (sentPath !== undefined) return escapeInvalid(sentPath)
  if (ambiguousPattern.test(rawPath)) throw platformError('invalid_path')
  return rawPath.split('/').map(encodeURIComponent).join('/')
}

/** Returns the path that a module receives, with the query as the caller sent it. Throws `invalid_path`. */
export function moduleTargetOf(event: GatewayEvent): string {
  const query = escapeInvalid(event.rawQueryString.toWellFormed())
  return query === '' ? modulePathOf(event) : `${modulePathOf(event)}?${query}`
}

// Encodes the characters that HTTP does not allow in a request target.
const escapeInvalid = (text: string): string => text.replaceAll(/[^\u0021-\u007e]|#/gu, encodeURIComponent)
